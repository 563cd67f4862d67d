"""An op-conformance suite for PyTorch device backends."""
