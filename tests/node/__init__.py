"""Tests of the node: real sockets, real TLS, real files."""
