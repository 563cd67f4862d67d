"""Samples: the model and its reader, the recorder, the deriver, and the pinned data."""
