"""The main commands in the settings of other machines, and a comparison of the cells' outcomes."""
