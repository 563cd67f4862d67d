"""The recordings of models in conformance/models/data: made from the configurations of public architectures."""
