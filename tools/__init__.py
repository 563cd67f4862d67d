"""The project's own tools; no part of what is installed."""
