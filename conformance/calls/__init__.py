"""ATen calls of a user's program, as they were made: taken, kept in a file, judged again."""
