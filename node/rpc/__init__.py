"""The wire: gRPC services, their server and client. Nothing outside sees protobuf classes."""

import os

# The library reports every refused handshake on stderr; the daemon reports what matters itself.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
