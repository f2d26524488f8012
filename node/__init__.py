"""Every effect: the daemon, its roles, RPC, storage, capture and the command line."""
