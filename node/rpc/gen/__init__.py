"""Protobuf code made from proto/ by node/rpc/generate.py."""
