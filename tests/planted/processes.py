"""What finds the planted faults that show in what several processes send each other."""

FOUND_IN: dict[str, tuple[str, str, str, str]] = {}

FOUND_ELSEWHERE: dict[str, str] = {}
