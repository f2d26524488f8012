"""The wire: protobuf messages, gRPC services and clients, and their errors."""
