"""Small programs of whole scenarios, each run on CPU and on a device, whose results have to be equal."""
