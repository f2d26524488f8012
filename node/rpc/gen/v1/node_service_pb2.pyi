from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RoleState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_STATE_UNSPECIFIED: _ClassVar[RoleState]
    ROLE_STATE_STARTING: _ClassVar[RoleState]
    ROLE_STATE_RUNNING: _ClassVar[RoleState]
    ROLE_STATE_WAITING: _ClassVar[RoleState]
    ROLE_STATE_STOPPED: _ClassVar[RoleState]
ROLE_STATE_UNSPECIFIED: RoleState
ROLE_STATE_STARTING: RoleState
ROLE_STATE_RUNNING: RoleState
ROLE_STATE_WAITING: RoleState
ROLE_STATE_STOPPED: RoleState

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusResponse(_message.Message):
    __slots__ = ("party", "name", "version", "kernel_set", "started_ms", "now_ms", "roles", "memory_limit_bytes", "memory_used_bytes", "disk_limit_bytes", "disk_free_bytes", "blob_bytes", "known_peers")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    KERNEL_SET_FIELD_NUMBER: _ClassVar[int]
    STARTED_MS_FIELD_NUMBER: _ClassVar[int]
    NOW_MS_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_USED_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    BLOB_BYTES_FIELD_NUMBER: _ClassVar[int]
    KNOWN_PEERS_FIELD_NUMBER: _ClassVar[int]
    party: bytes
    name: str
    version: str
    kernel_set: int
    started_ms: int
    now_ms: int
    roles: _containers.RepeatedCompositeFieldContainer[RoleStatus]
    memory_limit_bytes: int
    memory_used_bytes: int
    disk_limit_bytes: int
    disk_free_bytes: int
    blob_bytes: int
    known_peers: int
    def __init__(self, party: _Optional[bytes] = ..., name: _Optional[str] = ..., version: _Optional[str] = ..., kernel_set: _Optional[int] = ..., started_ms: _Optional[int] = ..., now_ms: _Optional[int] = ..., roles: _Optional[_Iterable[_Union[RoleStatus, _Mapping]]] = ..., memory_limit_bytes: _Optional[int] = ..., memory_used_bytes: _Optional[int] = ..., disk_limit_bytes: _Optional[int] = ..., disk_free_bytes: _Optional[int] = ..., blob_bytes: _Optional[int] = ..., known_peers: _Optional[int] = ...) -> None: ...

class RoleStatus(_message.Message):
    __slots__ = ("name", "state", "restarts", "last_error", "last_error_ms", "details")
    class DetailsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    RESTARTS_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_MS_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: RoleState
    restarts: int
    last_error: str
    last_error_ms: int
    details: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., state: _Optional[_Union[RoleState, str]] = ..., restarts: _Optional[int] = ..., last_error: _Optional[str] = ..., last_error_ms: _Optional[int] = ..., details: _Optional[_Mapping[str, str]] = ...) -> None: ...
