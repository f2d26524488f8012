"""Convolutions: `reference.py` and the native twins."""
