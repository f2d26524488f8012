"""Values and rules of the protocol: pure, exact and free of effects."""
