"""Disputes measured: what each kind of lie costs to settle; and drawn: how cost grows."""
