"""Tests of execution: states on disk, resumption, re-execution, workers."""
