"""The coordinator in an event loop: order, clocks, news and screens."""

import asyncio
import dataclasses
import threading
from collections.abc import AsyncIterator

import pytest

from identic.node.coordinator import documents
from identic.node.coordinator.heart import BEAT_MS
from identic.node.coordinator.inspection import Inspector
from identic.node.coordinator.screens import counts, float_of, losses
from identic.node.coordinator.service import Coordinator
from identic.node.views import Progress
from identic.proofs import merkle
from identic.proofs.envelope import seal
from identic.proofs.signatures import verify
from identic.protocol.encoding import decode, encode
from identic.protocol.errors import ProtocolError
from identic.protocol.hashing import Domain, leaf_hash
from identic.protocol.ids import Count, Digest, Signature
from identic.protocol.job.entries import Deposit, LogEntry, LogHead
from identic.protocol.job.messages import (
    AcceptJob,
    Enrol,
    SignedMessage,
    Statement,
    SubmitJob,
)
from identic.protocol.job.state import Job, Phase
from tests.node.coordinator.village import CLOCKS, KEYS, Run, Village, party, posting


def signed(name: str, said: Statement, nonce: int = 0) -> bytes:
    """A message as it comes over the wire."""
    return encode(seal(KEYS[name], party("coordinator"), nonce, said))


@pytest.fixture
async def coordinator(village: Village) -> AsyncIterator[Coordinator]:
    """The services over the village's host."""
    made = Coordinator(village.host, village.clock)
    yield made
    await made.close()


async def test_a_party_is_welcomed_when_it_speaks_for_itself(coordinator: Coordinator) -> None:
    await coordinator.append(party("anna"), signed("bert", Enrol()))
    assert coordinator.host.log.size == 1
    await coordinator.append(party("anna"), signed("anna", Enrol()))
    assert coordinator.host.board.known == (party("anna"),)


async def test_msg_3__a_message_repeated_keeps_its_index(coordinator: Coordinator) -> None:
    message = signed("anna", Enrol())
    indexes = [await coordinator.append(party("anna"), message) for _ in range(3)]
    assert indexes == [1, 1, 1]


async def test_calls_at_once_are_put_in_order(coordinator: Coordinator) -> None:
    names = ("anna", "bert", "watcher", "solver")
    calls = [coordinator.append(party(n), signed(n, Enrol(), i)) for i in range(5) for n in names]
    indexes = await asyncio.gather(*calls)
    assert len(set(indexes)) == 20
    assert coordinator.host.log.size == 24


async def test_a_watcher_sees_old_and_new_entries_in_order(coordinator: Coordinator) -> None:
    await coordinator.append(party("anna"), signed("anna", Enrol()))
    seen: list[LogEntry] = []

    async def watch() -> None:
        async for index, data in coordinator.watch(party("bert"), 0):
            entry = decode(LogEntry, data)
            assert entry.index == index == len(seen)
            seen.append(entry)
            if len(seen) == 4:
                return

    task = asyncio.create_task(watch())
    await coordinator.append(party("bert"), signed("bert", Enrol()))
    await asyncio.wait_for(task, 10)
    assert [type(entry.event) for entry in seen] == [Deposit, SignedMessage] * 2


async def test_job_4__nobody_watches_beyond_the_end(coordinator: Coordinator) -> None:
    with pytest.raises(ProtocolError) as refused:
        await anext(coordinator.watch(party("bert"), 1))
    assert refused.value.rule == "JOB-4"


async def test_job_4__heads_inclusion_and_consistency_fit_each_other(
    coordinator: Coordinator,
) -> None:
    roots = []
    for nonce in range(9):
        await coordinator.append(party("anna"), signed("anna", Enrol(), nonce))
        roots.append((coordinator.host.log.size, coordinator.host.log.root))
    signed_head = await coordinator.head(party("bert"))
    head = decode(LogHead, signed_head.head)
    verify(party("coordinator"), Domain.LOG, head, Signature(signed_head.signature))
    assert (head.size, head.root) == roots[-1]
    for index in range(head.size):
        found = await coordinator.inclusion(party("bert"), index, 0)
        leaf = leaf_hash(found.entry)
        assert merkle.root_from_path(leaf, index, found.size, found.path) == head.root
    for size, root in roots:
        proof = await coordinator.consistency(party("bert"), size, 0)
        merkle.check_consistency(size, root, int(head.size), head.root, proof.path)
    for call in (
        coordinator.inclusion(party("bert"), 99, 0),
        coordinator.inclusion(party("bert"), 0, 99),
    ):
        with pytest.raises(ProtocolError):
            await call
    for sizes in ((5, 3), (0, 99)):
        with pytest.raises(ProtocolError):
            await coordinator.consistency(party("bert"), *sizes)


async def test_clocks_are_called_when_they_run_down(
    coordinator: Coordinator, village: Village
) -> None:
    village.post().accept()
    assert await coordinator.tick() == 0
    for _ in range(0, CLOCKS.move_ms + CLOCKS.rerun_ms, BEAT_MS):
        village.clock.now += BEAT_MS
        village.host.wake()
    task = asyncio.create_task(coordinator.run())
    seen = coordinator.watch(party("bert"), village.host.log.size)
    entry = decode(LogEntry, (await asyncio.wait_for(anext(seen), 10))[1])
    assert type(entry.event).__name__ == "TimeCalled"
    task.cancel()
    assert village.job.phase is Phase.OPEN


async def test_a_service_takes_the_statements_that_it_is_for(coordinator: Coordinator) -> None:
    for call in (coordinator.submit_job, coordinator.submit_move):
        with pytest.raises(ProtocolError):
            await call(party("anna"), signed("anna", Enrol()))
    with pytest.raises(ProtocolError):
        await coordinator.append(party("anna"), b"garbage")
    assert coordinator.host.log.size == 0


async def test_a_job_over_the_services_is_shown_on_screens(
    coordinator: Coordinator, village: Village, honest: Run, false: Run
) -> None:
    for data in posting().blobs.values():
        village.blobs.put(data)
    job, index = await coordinator.submit_job(
        party("submitter"), signed("submitter", posting().said)
    )
    assert (job, index) == (posting().job, 1)
    accept = signed("solver", AcceptJob(posting().job, Count(1)))
    await coordinator.append(party("solver"), accept)
    village.commit(honest)
    await coordinator.report_progress(party("anna"), Progress(job, "verifier", 5, 1.5, 2.0, "runs"))
    await coordinator.report_progress(party("anna"), Progress(job, "verifier", 6))
    detail = await coordinator.get_job(party("anna"), job)
    assert detail.summary.phase == "training"
    assert (detail.summary.committed_step, detail.summary.escrow) == (7, 180)
    assert [p.step for p in detail.parties] == [6]
    assert [p.step for p in detail.losses] == [2, 4, 6, 7]
    assert detail.losses[0].loss == float_of(int(honest.marks[1].loss))
    assert len(detail.log_indexes) == 7
    assert [j.job_id for j in await coordinator.list_jobs(party("anna"), 5, "training")] == [job]
    assert await coordinator.list_jobs(party("anna"), 5, "open") == []
    village.challenge("watcher", false)
    (line,) = await coordinator.list_disputes(party("anna"), job, 5, open_only=True)
    assert (line.phase, line.level, line.challenger) == ("await both", "run 0", party("watcher"))
    village.play({"solver": honest, "watcher": false})
    assert await coordinator.list_disputes(party("anna"), None, 5, open_only=True) == []
    found = await coordinator.get_dispute(party("anna"), Digest(village.case.id))
    assert (found.summary.verdict, found.summary.loser) == ("wrong", party("watcher"))
    assert found.transcript == village.case.transcript
    assert found.summary.moves == len(village.case.moves) == len(found.log_indexes) - 2
    assert counts(village.host.board)["disputes"] == "1"
    assert len(losses(village.job)) == 4


async def test_progress_about_an_unknown_job_is_refused(coordinator: Coordinator) -> None:
    with pytest.raises(ProtocolError):
        await coordinator.report_progress(party("anna"), Progress(Digest(bytes(32)), "solver", 1))


def test_many_losses_are_thinned_with_the_last_one_kept(village: Village, honest: Run) -> None:
    village.post().accept().commit(honest, upto=2)
    mark = village.job.marks[1]
    marks = tuple(dataclasses.replace(mark, step=type(mark.step)(i)) for i in range(5_000))
    shown = losses(dataclasses.replace(village.job, marks=marks))
    assert 250 <= len(shown) <= 512
    assert shown[-1].step == 4_999
    assert [p.step for p in shown] == sorted({p.step for p in shown})


async def test_a_caller_that_goes_away_does_not_stop_what_was_begun(
    coordinator: Coordinator, village: Village, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, begun, submit = threading.Event(), threading.Event(), village.host.submit

    def slow(message: SignedMessage) -> int:
        begun.set()
        go.wait(10)
        return submit(message)

    monkeypatch.setattr(village.host, "submit", slow)
    call = asyncio.create_task(coordinator.append(party("anna"), signed("anna", Enrol())))
    await asyncio.to_thread(begun.wait, 10)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    news = coordinator.watch(party("bert"), 1)
    go.set()
    index, _ = await asyncio.wait_for(anext(news), 10)
    assert index == 1
    assert party("anna") in village.host.board.enrolled


async def test_job_20__nobody_waits_for_the_checks_of_other_peoples_blobs(
    coordinator: Coordinator, village: Village, honest: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clocks run meanwhile: whoever posts large blobs must not make others late."""
    village.post().accept()
    begun, go, check = threading.Event(), threading.Event(), Inspector.check

    def slow(self: Inspector, said: Statement, job: Job | None) -> None:
        if isinstance(said, SubmitJob):
            begun.set()
            go.wait(60)
        check(self, said, job)

    monkeypatch.setattr(Inspector, "check", slow)
    terms = posting().said.terms
    others = [dataclasses.replace(terms, nonce=Digest(bytes([n]) * 32)) for n in range(1, 5)]
    post = [
        asyncio.create_task(
            coordinator.submit_job(
                party("submitter"),
                signed("submitter", dataclasses.replace(posting().said, terms=one)),
            )
        )
        for one in others
    ]
    await asyncio.to_thread(begun.wait, 60)
    enrol = coordinator.append(party("watcher"), signed("watcher", Enrol()))
    assert await asyncio.wait_for(enrol, 60) > 0
    commit = signed("solver", village.commitment(honest, 1))
    assert await asyncio.wait_for(coordinator.append(party("solver"), commit), 60) > 0
    assert len(village.host.board.jobs) == 1
    go.set()
    await asyncio.gather(*post)
    assert len(village.host.board.jobs) == 5


async def test_job_20__messages_have_threads_of_their_own(coordinator: Coordinator) -> None:
    """Whoever moves large blobs may have all threads of the loop at work for a long time."""
    go = threading.Event()
    others = [asyncio.create_task(asyncio.to_thread(go.wait, 60)) for _ in range(64)]
    await asyncio.sleep(0)
    call = coordinator.append(party("anna"), signed("anna", Enrol()))
    assert await asyncio.wait_for(call, 50) == 1
    go.set()
    assert all(await asyncio.gather(*others))


async def test_job_20__settling_a_job_does_not_hash_its_last_state_while_others_wait(
    coordinator: Coordinator, village: Village, honest: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That was done when the run was finished, outside of the order of the log."""
    village.judged(honest)
    village.clock.now += CLOCKS.window_ms
    monkeypatch.setattr(documents, "load_state", None)
    assert await coordinator.tick() == 1
    assert village.job.phase is Phase.SETTLED


async def test_a_job_in_trouble_does_not_hold_up_the_others(village: Village, honest: Run) -> None:
    village.judged(honest)
    village.restart()
    coordinator = Coordinator(village.host, village.clock)
    assert village.job.finish is not None
    blob = village.job.finish.state
    village.blobs.remove(blob)
    village.clock.now += CLOCKS.window_ms
    assert await coordinator.tick() == 0
    assert list(village.host.troubles) == [posting().job]
    assert await coordinator.append(party("watcher"), signed("watcher", Enrol())) > 0
    village.blobs.put(honest.states[-1])
    assert await coordinator.tick() == 1
    assert village.host.troubles == {}
    await coordinator.close()
