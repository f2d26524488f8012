"""Money: a double-entry ledger as plain values, and the rules of who pays whom."""
