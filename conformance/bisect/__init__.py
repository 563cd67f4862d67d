"""Bisection: which torch version, or which commit of a backend, first shows a failure."""
