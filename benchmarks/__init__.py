"""Measurements behind the numbers in the docs. Each module is a command."""
