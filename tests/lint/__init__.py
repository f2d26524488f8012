"""Checks of the repository itself: layers, rule ids, sizes and packaging."""
