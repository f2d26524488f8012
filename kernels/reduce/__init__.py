"""Sums and maxima along an axis: `reference.py` and the native twins."""
