"""The files by which nodes are deployed."""
