"""Tests, foldered by need."""
