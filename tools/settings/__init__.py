"""Runs the main commands in settings of other machines, and compares the outcomes of cells."""
