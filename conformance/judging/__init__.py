"""One case run on CPU and on the device, and the differences found."""
