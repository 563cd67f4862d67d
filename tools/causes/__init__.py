"""A measurement: how often the first cause of a run's failures is the kernel in which a planted fault lies."""
