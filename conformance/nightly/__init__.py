"""What is done with a night's results: what is searched for, which issues it changes, what a relay is told."""
