"""The commands of ``conformance``, one group of them a module; ``cli`` puts them together."""
