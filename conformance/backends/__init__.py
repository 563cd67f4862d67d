"""Backends: the adapter that a backend offers, its capabilities, and how a backend is found."""

from conformance.backends.adapter import Backend
from conformance.backends.capabilities import Capabilities, with_index
from conformance.backends.finding import GROUP, BackendNotFound, default, find, offered

__all__ = ["GROUP", "Backend", "BackendNotFound", "Capabilities", "default", "find", "offered", "with_index"]
