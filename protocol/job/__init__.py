"""The life of a job: its terms, what the parties say about it, and the machine that judges."""
