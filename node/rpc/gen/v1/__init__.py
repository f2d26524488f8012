"""Messages and services of identic.v1."""
