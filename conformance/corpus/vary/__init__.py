"""Samples generated from the samples of the corpus: other sizes, other values, other arguments."""
