"""The lanes of a backend, and how a process of one is started; no torch."""
