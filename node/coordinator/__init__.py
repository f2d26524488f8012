"""The coordinator: job board, sequencer of the log, host of disputes, keeper of the ledger."""
