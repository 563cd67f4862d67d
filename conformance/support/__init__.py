"""Helpers with no knowledge of ops, devices or results."""
