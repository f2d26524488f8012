"""Checks and figures of a real CUDA device: ``run.sh`` runs them on a machine that has one."""
