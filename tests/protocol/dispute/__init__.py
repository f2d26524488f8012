"""Tests of the dispute game."""
