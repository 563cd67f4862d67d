"""Measures which planted faults of a backend each lane of the suite finds, and which other projects' checks find."""
