"""Tests of the coordinator: real programs, a fake clock, messages in this process."""
