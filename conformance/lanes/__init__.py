"""The lanes of a backend, and the start of processes in a lane. No torch."""
