"""The verifier: re-executes what solvers claim, and says what it found."""
