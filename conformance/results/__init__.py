"""The results of runs: kept, read and compared without torch."""
