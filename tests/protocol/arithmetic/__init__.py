"""Tests of the definition of arithmetic, against hardware and exact rational numbers."""
