"""What a node remembers: the log with its entries, and a few named values."""
