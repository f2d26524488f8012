"""Running sums: `reference.py` and the native twin."""
