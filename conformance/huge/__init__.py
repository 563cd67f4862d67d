"""Programs whose tensors have more than 2^31 elements or 2^32 bytes, which indices of 32 bits cannot count."""
