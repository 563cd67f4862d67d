"""Known failures as lists for PyTorch's own device-type tests, and such lists as known failures."""
