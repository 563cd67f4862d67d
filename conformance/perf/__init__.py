"""The speed of a backend: its calls measured next to CPU's, stored, compared and ranked."""
