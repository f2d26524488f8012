"""Whole networks of processes."""
