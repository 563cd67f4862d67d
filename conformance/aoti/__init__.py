"""AOTInductor: what a packaged model does with inputs that it was not compiled for, and its first wrong kernel."""
