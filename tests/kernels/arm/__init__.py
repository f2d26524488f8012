"""The native kernels of AArch64 under an emulator, called as the Python module is."""
