"""The kill-rate: the planted faults of a backend that each lane of the suite and the checks of other projects find."""
