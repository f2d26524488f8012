"""Operators that read indices: `reference.py` and the native twins."""
