"""Evidence: trees, commitments, openings, signatures and receipts."""
