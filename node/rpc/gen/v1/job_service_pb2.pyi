from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SubmitJobRequest(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: bytes
    def __init__(self, message: _Optional[bytes] = ...) -> None: ...

class SubmitJobResponse(_message.Message):
    __slots__ = ("job_id", "log_index")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LOG_INDEX_FIELD_NUMBER: _ClassVar[int]
    job_id: bytes
    log_index: int
    def __init__(self, job_id: _Optional[bytes] = ..., log_index: _Optional[int] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ("limit", "phase")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    limit: int
    phase: str
    def __init__(self, limit: _Optional[int] = ..., phase: _Optional[str] = ...) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[JobSummary]
    def __init__(self, jobs: _Optional[_Iterable[_Union[JobSummary, _Mapping]]] = ...) -> None: ...

class GetJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: bytes
    def __init__(self, job_id: _Optional[bytes] = ...) -> None: ...

class GetJobResponse(_message.Message):
    __slots__ = ("summary", "terms", "parties", "losses", "dispute_ids", "log_indexes")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    PARTIES_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    DISPUTE_IDS_FIELD_NUMBER: _ClassVar[int]
    LOG_INDEXES_FIELD_NUMBER: _ClassVar[int]
    summary: JobSummary
    terms: bytes
    parties: _containers.RepeatedCompositeFieldContainer[PartyProgress]
    losses: _containers.RepeatedCompositeFieldContainer[LossPoint]
    dispute_ids: _containers.RepeatedScalarFieldContainer[bytes]
    log_indexes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, summary: _Optional[_Union[JobSummary, _Mapping]] = ..., terms: _Optional[bytes] = ..., parties: _Optional[_Iterable[_Union[PartyProgress, _Mapping]]] = ..., losses: _Optional[_Iterable[_Union[LossPoint, _Mapping]]] = ..., dispute_ids: _Optional[_Iterable[bytes]] = ..., log_indexes: _Optional[_Iterable[int]] = ...) -> None: ...

class ReportProgressRequest(_message.Message):
    __slots__ = ("job_id", "role", "step", "loss", "rate", "activity")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    ACTIVITY_FIELD_NUMBER: _ClassVar[int]
    job_id: bytes
    role: str
    step: int
    loss: float
    rate: float
    activity: str
    def __init__(self, job_id: _Optional[bytes] = ..., role: _Optional[str] = ..., step: _Optional[int] = ..., loss: _Optional[float] = ..., rate: _Optional[float] = ..., activity: _Optional[str] = ...) -> None: ...

class ReportProgressResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class JobSummary(_message.Message):
    __slots__ = ("job_id", "phase", "submitter", "solver", "steps", "committed_step", "posted_ms", "attempt", "verdicts", "verdicts_wanted", "escrow", "deadline_ms")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    SUBMITTER_FIELD_NUMBER: _ClassVar[int]
    SOLVER_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_STEP_FIELD_NUMBER: _ClassVar[int]
    POSTED_MS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_WANTED_FIELD_NUMBER: _ClassVar[int]
    ESCROW_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    job_id: bytes
    phase: str
    submitter: bytes
    solver: bytes
    steps: int
    committed_step: int
    posted_ms: int
    attempt: int
    verdicts: int
    verdicts_wanted: int
    escrow: int
    deadline_ms: int
    def __init__(self, job_id: _Optional[bytes] = ..., phase: _Optional[str] = ..., submitter: _Optional[bytes] = ..., solver: _Optional[bytes] = ..., steps: _Optional[int] = ..., committed_step: _Optional[int] = ..., posted_ms: _Optional[int] = ..., attempt: _Optional[int] = ..., verdicts: _Optional[int] = ..., verdicts_wanted: _Optional[int] = ..., escrow: _Optional[int] = ..., deadline_ms: _Optional[int] = ...) -> None: ...

class PartyProgress(_message.Message):
    __slots__ = ("party", "role", "step", "loss", "rate", "activity", "reported_ms")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    ACTIVITY_FIELD_NUMBER: _ClassVar[int]
    REPORTED_MS_FIELD_NUMBER: _ClassVar[int]
    party: bytes
    role: str
    step: int
    loss: float
    rate: float
    activity: str
    reported_ms: int
    def __init__(self, party: _Optional[bytes] = ..., role: _Optional[str] = ..., step: _Optional[int] = ..., loss: _Optional[float] = ..., rate: _Optional[float] = ..., activity: _Optional[str] = ..., reported_ms: _Optional[int] = ...) -> None: ...

class LossPoint(_message.Message):
    __slots__ = ("step", "loss")
    STEP_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    step: int
    loss: float
    def __init__(self, step: _Optional[int] = ..., loss: _Optional[float] = ...) -> None: ...
