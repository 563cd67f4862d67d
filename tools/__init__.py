"""The project's own tools, which are not installed."""
