"""The tests of the suite. Their layout is that of conformance/."""
