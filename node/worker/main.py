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

from identic.kernels.cuda.device import DeviceFault
from identic.node.logging import configure
from identic.node.worker import cards, frames
from identic.node.worker.session import Session, examined
from identic.protocol.errors import LocalError, ProtocolError

LOOK = "look at the card and its driver; `identic doctor` tries it"


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
    """Answer every request in order; a failed one is answered with its error.

    Returns only when a device has failed: what it was to compute is lost with it.
    """

    def reply(message: frames.Reply) -> None:
        replies.write(frames.pack_reply(message))
        replies.flush()

    desk = _Desk(reply)
    while True:
        try:
            desk.answer(frames.unpack_request(requests.get()))
        except ProtocolError as error:
            reply(frames.RefusedByRule(error.rule, str(error.code), error.got, error.want))
        except LocalError as error:
            reply(frames.Unable.of(error))
            if isinstance(error, DeviceFault):
                # EXE-23: nothing more comes out of a process whose device has failed.
                return
        except MemoryError:
            problem = "this machine has too little memory for the job"
            reply(frames.Unable(problem, "lower limits.memory_bytes"))


class _Desk:
    """Answers requests about the job that was assigned.

    Args:
        reply: takes each reply.
    """

    def __init__(self, reply: Callable[[frames.Reply], None]) -> None:
        self._reply = reply
        self._session: Session | None = None

    def answer(self, request: frames.Request) -> None:
        """Answer a request.

        Raises:
            ProtocolError: what was given breaks a rule.
            LocalError: this machine cannot do it.
        """
        try:
            self._answer(request)
        except RuntimeError as error:
            if not cards.raised(error):
                raise
            raise DeviceFault(f"the device failed: {error}", remedy=LOOK) from error

    def _answer(self, request: frames.Request) -> None:
        reply = self._reply
        if isinstance(request, frames.Assignment):
            self._session = Session(request)
            reply(self._session.ready)
        elif isinstance(request, frames.Examine):
            reply(examined(request))
        elif self._session is None:
            raise RuntimeError("the first request is not an assignment")
        elif isinstance(request, frames.Train):
            for message in self._session.train(request):
                reply(message)
        elif isinstance(request, frames.Answer):
            reply(self._session.answer(request))
        else:
            reply(self._session.trace_root(request))


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
