"""Identic: training runs that anyone can re-execute, bit for bit."""
