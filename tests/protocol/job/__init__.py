"""Tests of the life of a job."""
