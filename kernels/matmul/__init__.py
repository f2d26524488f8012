"""Matrix product: `reference.py` and the native twins."""
