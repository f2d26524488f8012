"""Capture of torch jobs."""
