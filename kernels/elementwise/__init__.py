"""Elementwise operators: `reference.py` and the native twins."""
