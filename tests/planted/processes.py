"""The finders of planted faults that show in the data that several processes send each other."""

FOUND_IN: dict[str, tuple[str, str, str, str]] = {}

FOUND_ELSEWHERE: dict[str, str] = {}
