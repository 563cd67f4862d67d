"""The running of cells in child processes."""
