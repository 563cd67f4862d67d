"""The cells and cases that a run will try; no device is touched here."""
