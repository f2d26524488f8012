"""Lowering of graphs, without any framework."""
