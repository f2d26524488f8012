"""The native kernels of AVX-512 on a simulated processor that has it."""
