"""Entry of the worker process: ``python -m identic.node.worker.main``.

Reads requests from standard input and writes replies to the pipe that was standard output;
whatever a library prints goes to standard error. A thread of its own reads the input, so that
the process ends when its daemon is gone, also in the middle of a long step. State survives
only in the blob store, whose writes are atomic: the process may be killed at any time.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import BinaryIO

from identic.node.logging import configure
from identic.node.worker import frames
from identic.node.worker.session import Session
from identic.protocol.errors import LocalError, ProtocolError, Unsound


def main() -> int:
    """Serve requests until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    configure()
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # Unbuffered: a buffer's lock, held by the waiting thread, would trip the interpreter's end.
    source = os.fdopen(os.dup(0), "rb", buffering=0)
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(source, requests), daemon=True).start()
    try:
        serve(requests, replies)
    except BrokenPipeError:
        # The daemon is gone; there is nobody to tell.
        return 0
    return 1


def _listen(source: BinaryIO, requests: SimpleQueue[bytes]) -> None:
    """Hand on every request; at the end of the input end the process, whatever it is at."""
    while (body := read_frame(source)) is not None:
        requests.put(body)
    # EXE-9: the process ends with its daemon; what it has stored is whole.
    os._exit(0)


def serve(requests: SimpleQueue[bytes], replies: BinaryIO) -> None:
    """Answer every request in order; a failed one is answered with its error."""

    def reply(message: frames.Reply) -> None:
        replies.write(frames.pack_reply(message))
        replies.flush()

    session: Session | None = None
    while True:
        request = frames.unpack_request(requests.get())
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
            unsound = isinstance(error, Unsound)
            reply(frames.Unable(error.problem, error.remedy, unsound))
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
    prefix = _exactly(stream, frames.LENGTH_BYTES)
    return None if prefix is None else _exactly(stream, frames.frame_length(prefix))


def _exactly(stream: BinaryIO, count: int) -> bytes | None:
    """As many bytes, or ``None`` where the stream ends before."""
    got = bytearray()
    while len(got) < count:
        piece = stream.read(count - len(got))
        if not piece:
            return None
        got += piece
    return bytes(got)


if __name__ == "__main__":
    sys.exit(main())
