"""Golden vectors, and the programs that make them."""
