"""Tests of the ledger and of who pays whom."""
