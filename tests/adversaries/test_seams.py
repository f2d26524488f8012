"""Lies at the seams of a step: what is loaded, what is stored, and what nobody computed."""

import pytest

from identic.proofs.tensors import tensor_digest
from identic.protocol.dispute.moves import Side
from identic.protocol.dtypes import DType
from identic.protocol.hashing import sha256
from identic.protocol.tensors import TensorType
from tests.helpers.calls import case
from tests.helpers.duel import Ended, duel
from tests.helpers.execution import Lie, MemoryExecution, StateLie
from tests.helpers.one_operator import job_of
from tests.helpers.scripted import Chooser, Scripted
from tests.helpers.small_run import small_run

RUN = small_run()
WIDTHS = (4, 2048)


def tell(liar: MemoryExecution, side: Side, width: int = 2048) -> Ended:
    """Play a liar on ``side`` against the honest run."""
    return duel(RUN).liar(side, liar).at_width(width).play()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("side", list(Side))
def test_ref_8__a_changed_batch_schedule_or_parameter_is_found_at_its_load(
    side: Side, width: int
) -> None:
    step = 2
    for value in (0, 3, 5, RUN.load("examples"), RUN.load("labels"), RUN.load("schedule")):
        # Every element, since a step reads few of the examples.
        for element in range(RUN.plan.type(value).elements):
            liar = RUN.lying(RUN.flipped(step, value, element))
            if liar.run_leaves() != RUN.good.run_leaves():
                tell(liar, side, width).wrong(side, "REF-8", step, value)
                break
        else:
            raise AssertionError(f"no lie about load {value} changes the result")


@pytest.mark.parametrize("side", list(Side))
def test_ref_8__a_changed_context_is_found(side: Side) -> None:
    contexts = len(RUN.plan.loads) - RUN.program.shards
    for shard in range(RUN.program.shards):
        liar = RUN.lying(Lie(1, contexts + shard, 5, (), 1 - shard))
        tell(liar, side).wrong(side, "REF-8", 1, contexts + shard)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("side", list(Side))
def test_ref_12__sampler_schedule_and_loss_operators_are_held_to_their_rule(
    side: Side, width: int
) -> None:
    places = {
        "sampler": (RUN.value("shuffled_index", 1), 1),
        "batch": (RUN.value("take_rows", 0), 0),
        "schedule": (RUN.value("take_rows", -1), 0),
        "loss": (RUN.plan.outputs[-1], 0),
        "gradient": (RUN.value("matmul", 3), 0),
        "reduction": (RUN.value("full", -2), 0),
    }
    for value, element in places.values():
        liar = RUN.lying(RUN.flipped(3, value, element))
        if liar.run_leaves() != RUN.good.run_leaves():
            tell(liar, side, width).wrong(side, "REF-12", 3, value)
    loss = RUN.lying(RUN.flipped(3, *places["loss"]))
    assert loss.run_leaves() != RUN.good.run_leaves()


def test_ref_12__a_lie_about_any_value_of_a_step_is_found_there() -> None:
    found = 0
    for value in range(len(RUN.plan.loads), RUN.plan.values):
        if not RUN.plan.type(value).elements:
            continue
        liar = RUN.lying(RUN.flipped(1, value, RUN.plan.type(value).elements - 1))
        if liar.run_leaves() == RUN.good.run_leaves():
            continue
        side = Side.DEFENDER if value % 2 else Side.CHALLENGER
        tell(liar, side, 4 if value % 3 else 2048).wrong(side, "REF-12", 1, value)
        found += 1
    assert found > len(RUN.plan.calls) // 2


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("side", list(Side))
def test_ref_11__a_state_that_no_operator_made_is_found(side: Side, width: int) -> None:
    types = [variable.type for variable in RUN.program.state]
    for index in range(len(types)):
        other = bytes(types[index].nbytes - 1) + b"\x7f"
        lie = StateLie(3, index, tensor_digest(types[index], other))
        tell(RUN.lying(lie), side, width).wrong(side, "REF-11", 3, RUN.plan.outputs[index])


@pytest.mark.parametrize("side", list(Side))
def test_ref_11__a_parameter_left_as_it_was_is_found(side: Side) -> None:
    for index in (0, 1):
        lie = StateLie(3, index, RUN.good.state_digests(3)[index])
        tell(RUN.lying(lie), side).wrong(side, "REF-11", 3, RUN.plan.outputs[index])


@pytest.mark.parametrize("width", WIDTHS[1:])
@pytest.mark.parametrize("side", list(Side))
def test_ref_10__a_wrong_header_is_found(side: Side, width: int) -> None:
    liar = RUN.lying(StateLie(3, -1, sha256(b"another seed")))
    tell(liar, side, width).wrong(side, "REF-10", 3, None)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("side", list(Side))
def test_ref_7__a_run_from_another_start_is_found(side: Side, width: int) -> None:
    liar = RUN.lying()
    liar.roots[0] = sha256(b"pretrained")
    tell(liar, side, width).wrong(side, "REF-7", None, None)


@pytest.mark.parametrize("side", list(Side))
def test_ref_9__a_result_without_elements_has_one_digest(side: Side) -> None:
    kind = TensorType.of(DType.FLOAT32, (0, 3))
    job = job_of(case("neg", [kind], [[]]))
    liar = Scripted(job.good, Chooser([1, 0, job.value, 0]).pick)
    ended = duel(job).claiming(side, liar.leaves, liar).play()
    ended.wrong(side, "REF-9", 0, job.value)


@pytest.mark.parametrize("side", list(Side))
def test_dsp_12__a_root_that_nobody_can_open_loses_by_time(side: Side) -> None:
    liar = RUN.lying()
    liar.roots[4] = sha256(b"no state")
    liar.traces[3][-1] = liar.roots[4]
    ended = tell(liar, side).late(side, "state")
    assert [(who, error.rule) for who, error in ended.game.refused] == [(side, "DSP-6")]


@pytest.mark.parametrize("side", list(Side))
def test_ref_12__a_lie_beyond_the_first_chunk_is_found(side: Side) -> None:
    scalar, wide = TensorType.of(DType.FLOAT32, ()), 2500
    job = job_of(case("expand", [scalar], [[0x3F800000]], shape=(wide,)))
    for element in (0, 1023, 1024, 2047, 2048, wide - 1):
        liar = job.lying(Lie(0, job.value, element, (), 7))
        ended = duel(job).liar(side, liar).at_width(2).opened_by(side.other).play()
        assert ended.wrong(side, "REF-12", 0, job.value).ruling.element == element


def test_dsp_8__a_trace_wider_than_a_message_is_told_in_two_rounds() -> None:
    run = small_run(shards=45, steps=1, cadence=1)
    assert run.plan.values > 2048
    # Values of the second block, one with operands in the first; and one of the first block.
    for value, differ in ((run.plan.outputs[0], 1), (run.value("sub", 0), 0)):
        liar = run.lying(run.flipped(0, value))
        ended = duel(run).liar(Side.DEFENDER, liar).play()
        first, second = ended.wrong(Side.DEFENDER, "REF-12", 0, value).ruling.rounds[1:3]
        assert (first.level, first.block, first.differ) == ("step", 2048, differ)
        assert (second.level, second.block, second.first) == ("step", 1, 2048 * differ)
