from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class AppendRequest(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: bytes
    def __init__(self, message: _Optional[bytes] = ...) -> None: ...

class AppendResponse(_message.Message):
    __slots__ = ("index",)
    INDEX_FIELD_NUMBER: _ClassVar[int]
    index: int
    def __init__(self, index: _Optional[int] = ...) -> None: ...

class WatchLogRequest(_message.Message):
    __slots__ = ("from_index",)
    FROM_INDEX_FIELD_NUMBER: _ClassVar[int]
    from_index: int
    def __init__(self, from_index: _Optional[int] = ...) -> None: ...

class WatchLogResponse(_message.Message):
    __slots__ = ("index", "entry")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    index: int
    entry: bytes
    def __init__(self, index: _Optional[int] = ..., entry: _Optional[bytes] = ...) -> None: ...

class GetHeadRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetHeadResponse(_message.Message):
    __slots__ = ("head", "signature", "party")
    HEAD_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    PARTY_FIELD_NUMBER: _ClassVar[int]
    head: bytes
    signature: bytes
    party: bytes
    def __init__(self, head: _Optional[bytes] = ..., signature: _Optional[bytes] = ..., party: _Optional[bytes] = ...) -> None: ...

class GetInclusionRequest(_message.Message):
    __slots__ = ("index", "size")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    index: int
    size: int
    def __init__(self, index: _Optional[int] = ..., size: _Optional[int] = ...) -> None: ...

class GetInclusionResponse(_message.Message):
    __slots__ = ("size", "entry", "path")
    SIZE_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    size: int
    entry: bytes
    path: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, size: _Optional[int] = ..., entry: _Optional[bytes] = ..., path: _Optional[_Iterable[bytes]] = ...) -> None: ...

class GetConsistencyRequest(_message.Message):
    __slots__ = ("first_size", "second_size")
    FIRST_SIZE_FIELD_NUMBER: _ClassVar[int]
    SECOND_SIZE_FIELD_NUMBER: _ClassVar[int]
    first_size: int
    second_size: int
    def __init__(self, first_size: _Optional[int] = ..., second_size: _Optional[int] = ...) -> None: ...

class GetConsistencyResponse(_message.Message):
    __slots__ = ("second_size", "path")
    SECOND_SIZE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    second_size: int
    path: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, second_size: _Optional[int] = ..., path: _Optional[_Iterable[bytes]] = ...) -> None: ...
