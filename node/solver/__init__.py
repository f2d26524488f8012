"""The solver: takes open jobs, trains them, and answers for the result."""
