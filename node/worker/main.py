"""Entry of the worker process: ``python -m identic.node.worker.main``.

Reads requests from standard input and writes replies to the pipe that was standard output;
whatever a library prints goes to standard error. Ends when its input ends, so that it never
outlives its daemon. State survives only in the blob store, whose writes are atomic: the
process may be killed at any time.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import BinaryIO

from identic.node.worker import frames
from identic.node.worker.session import Session
from identic.protocol.errors import LocalError, ProtocolError


def main() -> int:
    """Serve requests until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, replies)
    return 0


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer every request in order; a failed one is answered with its error."""

    def reply(message: frames.Reply) -> None:
        replies.write(frames.pack_reply(message))
        replies.flush()

    session: Session | None = None
    while (body := read_frame(requests)) is not None:
        request = frames.unpack_request(body)
        try:
            if isinstance(request, frames.Assignment):
                session = Session(request)
                reply(session.ready)
            elif session is None:
                raise RuntimeError("the first request is not an assignment")
            else:
                _dispatch(session, request, reply)
        except ProtocolError as error:
            reply(frames.RefusedByRule(error.rule, str(error.code), error.got, error.want))
        except LocalError as error:
            reply(frames.Unable(error.problem, error.remedy))
        except MemoryError:
            reply(
                frames.Unable(
                    "this machine has too little memory for the job", "lower limits.memory_bytes"
                )
            )


def _dispatch(
    session: Session, request: frames.Request, reply: Callable[[frames.Reply], None]
) -> None:
    if isinstance(request, frames.Train):
        for message in session.train(request):
            reply(message)
    elif isinstance(request, frames.Answer):
        reply(session.answer(request))
    elif isinstance(request, frames.TraceRoot):
        reply(session.trace_root(request))


def read_frame(stream: BinaryIO) -> bytes | None:
    """The next frame, or ``None`` where the other end has gone."""
    prefix = stream.read(frames.LENGTH_BYTES)
    if len(prefix) < frames.LENGTH_BYTES:
        return None
    length = frames.frame_length(prefix)
    body = stream.read(length)
    return body if len(body) == length else None


if __name__ == "__main__":
    sys.exit(main())
