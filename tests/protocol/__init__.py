"""Tests of the values and rules of the protocol."""
