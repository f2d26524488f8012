"""Runs CUDA kernels on the CPU, one fiber a thread."""
