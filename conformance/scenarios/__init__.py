"""Scenarios: small programs whose results must be equal on CPU and on the device."""
