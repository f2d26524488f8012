"""Tests of the native kernels."""
