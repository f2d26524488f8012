"""Tests of what is measured, and the figures of disputes."""
