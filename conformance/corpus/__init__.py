"""The samples: model, reader, recorder, deriver, and the pinned data."""
