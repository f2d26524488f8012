"""Tests of what the parties share."""
