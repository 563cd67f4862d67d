"""The report for people: a static site that opens from a file, and the same results as text for a terminal."""
