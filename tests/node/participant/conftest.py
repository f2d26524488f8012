"""The coordinator's village serves tests of parties, too."""

from tests.node.coordinator.conftest import false, honest, village

__all__ = ["false", "honest", "village"]
