"""The operators on CUDA devices: kernels compiled from source, launched on a device."""
