"""Sorted positions: `reference.py` and the native twins."""
