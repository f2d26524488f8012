"""Execution of a job on this machine: stored states, runs, and what a dispute asks for."""
