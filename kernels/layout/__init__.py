"""Operators that move or create elements: `reference.py` and the native twins."""
