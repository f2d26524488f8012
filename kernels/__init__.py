"""The operators in three twins: reference, native CPU and CUDA."""
