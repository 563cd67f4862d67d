"""The report that people look at: a static site that opens from a file, and the same as text in a terminal."""
