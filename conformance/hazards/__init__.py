"""Hazards: programs that are right on every correct backend, and wrong if one dependency is missing."""
