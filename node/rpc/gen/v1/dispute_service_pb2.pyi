from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SubmitMoveRequest(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: bytes
    def __init__(self, message: _Optional[bytes] = ...) -> None: ...

class SubmitMoveResponse(_message.Message):
    __slots__ = ("log_index",)
    LOG_INDEX_FIELD_NUMBER: _ClassVar[int]
    log_index: int
    def __init__(self, log_index: _Optional[int] = ...) -> None: ...

class GetDisputeRequest(_message.Message):
    __slots__ = ("dispute_id",)
    DISPUTE_ID_FIELD_NUMBER: _ClassVar[int]
    dispute_id: bytes
    def __init__(self, dispute_id: _Optional[bytes] = ...) -> None: ...

class GetDisputeResponse(_message.Message):
    __slots__ = ("summary", "log_indexes", "transcript")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    LOG_INDEXES_FIELD_NUMBER: _ClassVar[int]
    TRANSCRIPT_FIELD_NUMBER: _ClassVar[int]
    summary: DisputeSummary
    log_indexes: _containers.RepeatedScalarFieldContainer[int]
    transcript: bytes
    def __init__(self, summary: _Optional[_Union[DisputeSummary, _Mapping]] = ..., log_indexes: _Optional[_Iterable[int]] = ..., transcript: _Optional[bytes] = ...) -> None: ...

class ListDisputesRequest(_message.Message):
    __slots__ = ("job_id", "limit", "open_only")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    OPEN_ONLY_FIELD_NUMBER: _ClassVar[int]
    job_id: bytes
    limit: int
    open_only: bool
    def __init__(self, job_id: _Optional[bytes] = ..., limit: _Optional[int] = ..., open_only: bool = ...) -> None: ...

class ListDisputesResponse(_message.Message):
    __slots__ = ("disputes",)
    DISPUTES_FIELD_NUMBER: _ClassVar[int]
    disputes: _containers.RepeatedCompositeFieldContainer[DisputeSummary]
    def __init__(self, disputes: _Optional[_Iterable[_Union[DisputeSummary, _Mapping]]] = ...) -> None: ...

class DisputeSummary(_message.Message):
    __slots__ = ("dispute_id", "job_id", "defender", "challenger", "phase", "level", "moves", "bytes_exchanged", "deadline_ms", "opened_ms", "verdict", "rule", "loser")
    DISPUTE_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    DEFENDER_FIELD_NUMBER: _ClassVar[int]
    CHALLENGER_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    BYTES_EXCHANGED_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    OPENED_MS_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    LOSER_FIELD_NUMBER: _ClassVar[int]
    dispute_id: bytes
    job_id: bytes
    defender: bytes
    challenger: bytes
    phase: str
    level: str
    moves: int
    bytes_exchanged: int
    deadline_ms: int
    opened_ms: int
    verdict: str
    rule: str
    loser: bytes
    def __init__(self, dispute_id: _Optional[bytes] = ..., job_id: _Optional[bytes] = ..., defender: _Optional[bytes] = ..., challenger: _Optional[bytes] = ..., phase: _Optional[str] = ..., level: _Optional[str] = ..., moves: _Optional[int] = ..., bytes_exchanged: _Optional[int] = ..., deadline_ms: _Optional[int] = ..., opened_ms: _Optional[int] = ..., verdict: _Optional[str] = ..., rule: _Optional[str] = ..., loser: _Optional[bytes] = ...) -> None: ...
