"""Liars of every kind, and the referee that finds them."""
