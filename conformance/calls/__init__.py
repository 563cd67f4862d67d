"""ATen calls of a user's program: captured, stored in a file, and made again."""
