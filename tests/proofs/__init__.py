"""Tests of the evidence: trees, commitments, openings, signatures, rulings and receipts."""
