"""The demonstration: a network of processes on this machine, an honest run, and a lie."""
