"""Writes at places read from an index: `reference.py` and the native twins."""
