"""The tool's own tests, laid out as conformance/ is."""
