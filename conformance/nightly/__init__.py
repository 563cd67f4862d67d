"""The nightly results: bisections, issues, and the report to PyTorch's CI relay."""
