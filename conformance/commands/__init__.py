"""The commands of ``conformance``, one group in each module. ``cli`` registers them."""
