"""Random numbers and the sampler: `reference.py` and the native twins."""
