"""Bisection: finds the torch version or the commit of a backend that first shows a failure."""
