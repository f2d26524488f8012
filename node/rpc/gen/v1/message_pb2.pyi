from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class SignedMessage(_message.Message):
    __slots__ = ("body", "signature", "party")
    BODY_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    PARTY_FIELD_NUMBER: _ClassVar[int]
    body: bytes
    signature: bytes
    party: bytes
    def __init__(self, body: _Optional[bytes] = ..., signature: _Optional[bytes] = ..., party: _Optional[bytes] = ...) -> None: ...
