"""How many of a backend's planted faults each lane of the suite kills, and how many the checks of others do."""
