"""Pools: `reference.py` and the native twins."""
