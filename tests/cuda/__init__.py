"""CUDA kernels without a GPU: run on the CPU thread by thread, compiled and audited by NVRTC."""
