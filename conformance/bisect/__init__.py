"""Bisection: the search for the torch version or the backend's commit that first shows a failure."""
