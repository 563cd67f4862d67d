"""What backs every number in the docs; each module is a command of its own."""
