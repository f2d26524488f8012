"""Times operators, training steps and commitments beside torch, numpy and hashlib.

``identic bench`` measures each number of threads in a process of its own, so that no library
keeps the number of another measurement. docs/benchmarks.md says what is measured.
"""
