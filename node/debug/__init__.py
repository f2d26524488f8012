"""Comparing backends on random calls: for people who look for a wrong bit, and for tests."""
