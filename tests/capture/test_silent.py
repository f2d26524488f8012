"""What would be captured wrongly without a word is found: refused, remarked on, or made right."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from identic.node.capture import (
    AdamW,
    Captured,
    CaptureError,
    Rows,
    TrainingJob,
    capture,
    check_against_eager,
)
from identic.protocol.program.codec import program_digest
from tests.capture.models import CASES, GPT, MLP, BatchNormed, Counting, classify

# mypy: disable-error-code="no-any-return"


class Net(nn.Module):
    """A model whose forward pass is a given function of itself and its hidden layer."""

    def __init__(self, body: Callable[[Any, Tensor], Tensor], **attributes: Any) -> None:
        super().__init__()
        self.l1, self.l2 = nn.Linear(12, 16), nn.Linear(16, 5)
        self.body = body
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, x: Tensor) -> Tensor:
        return self.l2(self.body(self, self.l1(x)))


def captured(model: nn.Module, **changed: Any) -> Captured:
    """The capture of the plain job with another model, compared with torch."""
    job = CASES["mlp"].job(model=model, **changed)
    made = capture(job)
    assert check_against_eager(made, job).difference < 1e-5
    return made


def refused(model: nn.Module, **changed: Any) -> CaptureError:
    """The refusal of the plain job with another model."""
    with pytest.raises(CaptureError) as caught:
        capture(CASES["mlp"].job(model=model, **changed))
    return caught.value


# ---- random numbers, counters, attributes ---------------------------------------------------


def _coin(_: Any, x: Tensor) -> Tensor:
    return x * 2 if random.random() < 2 else x


def _numpy(_: Any, x: Tensor) -> Tensor:
    return x * float(np.random.rand() < 2)  # noqa: NPY002


def _count(net: Any, x: Tensor) -> Tensor:
    net.calls += 1
    return x if net.calls < 1000 else x * 2


def _history(net: Any, x: Tensor) -> Tensor:
    net.seen.append(x.shape)
    return x


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (_coin, "Python's random"),
        (_numpy, "numpy.random"),
        (_count, "attribute calls, from 1 to 2"),
        (_history, "attribute seen"),
    ],
)
def test_cap_2__what_stays_the_same_by_luck_is_refused_at_its_line(
    body: Callable[[Any, Tensor], Tensor], word: str
) -> None:
    error = refused(Net(body, calls=0, seen=[]))
    assert error.rule == "CAP-2"
    assert word in error.problem
    assert (error.file, error.line) == ("test_silent.py", body.__code__.co_firstlineno + 1)


COUNTS = {"steps": 0}


def counted(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    COUNTS["steps"] += 1
    return classify(model, x, y)


def test_cap_2__variables_of_the_loss_function_are_watched() -> None:
    error = refused(MLP(), loss=counted)
    assert (error.rule, error.line) == ("CAP-2", counted.__code__.co_firstlineno + 1)
    assert "variable COUNTS" in error.problem


def _auxiliary(net: Any, x: Tensor) -> Tensor:
    net.aux = x.square().mean()
    net.log.append(net.aux)
    net.log.pop(0)
    return x * 2


def test_cap_2__attributes_that_a_step_sets_are_used_and_put_back() -> None:
    model = Net(_auxiliary, log=["before"])

    def loss(model: Any, x: Tensor, y: Tensor) -> Tensor:
        return classify(model, x, y) + 0.5 * model.aux

    captured(model, loss=loss)
    assert model.log == ["before"]
    assert not hasattr(model, "aux")
    assert torch.isfinite(model(torch.zeros(1, 12))).all()


def _running(net: Any, x: Tensor) -> Tensor:
    net.mean = net.mean * 0.9 + x.detach().mean(0) * 0.1
    return x - net.mean


def _cached(net: Any, x: Tensor) -> Tensor:
    if net.mean is None:
        net.mean = x.detach().mean(0)
    return x - net.mean


@pytest.mark.parametrize(("body", "mean"), [(_running, torch.zeros(16)), (_cached, None)])
def test_cap_2__tensors_that_go_from_step_to_step_are_buffers(
    body: Callable[[Any, Tensor], Tensor], mean: Tensor | None
) -> None:
    error = refused(Net(body, mean=mean))
    assert (error.rule, error.file) == ("CAP-2", "test_silent.py")
    assert "the next" in error.problem
    model = Net(_running)
    model.register_buffer("mean", torch.zeros(16))
    assert [v.name for v in captured(model).program.buffers] == ["mean"]


# ---- hooks ----------------------------------------------------------------------------------


def test_cap_2__hooks_that_tracing_would_drop_are_refused() -> None:
    model = MLP()
    model.l1.weight.register_post_accumulate_grad_hook(print)  # type: ignore[no-untyped-call]
    assert refused(model).rule == "CAP-2"


def _tripled(_module: nn.Module, gradients: Any, _outputs: Any) -> Any:
    return (gradients[0] * 3,)


def test_cap_9__hooks_of_modules_are_captured() -> None:
    plain = captured(MLP())
    model = MLP()
    model.l1.register_forward_hook(lambda _m, _i, out: out * 2)
    model.l2.register_full_backward_hook(_tripled)
    assert program_digest(captured(model).program) != program_digest(plain.program)


# ---- activation checkpointing ---------------------------------------------------------------


def _checkpointed(net: Any, x: Tensor) -> Tensor:
    def inner(t: Tensor) -> Tensor:
        return F.dropout(torch.relu(F.dropout(t, 0.3)), 0.5)

    y: Any = checkpoint(inner, x, **net.options)
    return F.dropout(y, 0.1)


@pytest.mark.parametrize("reentrant", [True, False])
def test_cap_8__dropout_under_checkpointing_draws_the_same_numbers_again(reentrant: bool) -> None:
    plain = captured(Net(lambda _, x: F.dropout(F.dropout(F.dropout(x, 0.3).relu(), 0.5), 0.1)))
    again = captured(Net(_checkpointed, options={"use_reentrant": reentrant}))
    # Recomputed values are the values: the program is the one without checkpointing.
    assert program_digest(again.program) == program_digest(plain.program)
    draws = [i for i in again.program.gradient.instructions if i.op == "random_uniform"]
    assert len(draws) == 3
    captured(Counting(p=0.5))


def test_cap_8__two_masks_under_checkpointing_are_refused() -> None:
    options = {"use_reentrant": False, "preserve_rng_state": False}
    error = refused(Net(_checkpointed, options=options))
    assert error.rule == "CAP-8"
    assert "preserve_rng_state" in error.advice


@pytest.mark.parametrize(
    "body",
    [
        lambda _, x: (torch.manual_seed(1), x + torch.rand(16))[1],
        lambda _, x: [x, torch.set_rng_state(torch.zeros(8))][0],  # type: ignore[func-returns-value]
    ],
)
def test_cap_8__a_seed_inside_the_step_is_refused(body: Callable[[Any, Tensor], Tensor]) -> None:
    error = refused(Net(body))
    assert (error.rule, error.file) == ("CAP-8", "test_silent.py")


# ---- one tensor, several names --------------------------------------------------------------


def _steps(net: Any, x: Tensor) -> Tensor:
    net.count.add_(1)
    return x * net.same


def test_cap_2__a_buffer_under_two_names_is_one() -> None:
    model = Net(_steps)
    shared = torch.ones(())
    model.register_buffer("count", shared)
    model.register_buffer("same", shared)
    assert [v.name for v in captured(model).program.buffers] == ["count"]


def test_cap_2__tied_weights_are_one_parameter() -> None:
    job = CASES["gpt_tied"].job()
    assert isinstance(job.model, GPT)
    made = capture(job)
    names = [v.name for v in made.program.parameters]
    assert "tokens.weight" in names
    assert "head.weight" not in names
    again = CASES["gpt_tied"].job(optimizer=torch.optim.Adam(job.model.parameters()))
    optimizer = torch.optim.Adam(again.model.parameters())
    assert capture(CASES["gpt_tied"].job(model=again.model, optimizer=optimizer)).program.trainable


@pytest.mark.parametrize("part", [slice(None), slice(4, 12)])
def test_cap_2__tensors_that_share_memory_are_refused(part: slice) -> None:
    model = MLP()
    model.register_buffer("view", model.l1.weight.detach()[part])
    error = refused(model)
    assert error.rule == "CAP-2"
    assert "share memory" in error.problem
    again = MLP()
    again.extra = nn.Parameter(again.l1.weight.data)
    assert refused(again).rule == "CAP-2"


def test_cap_2__parameters_are_reached_through_the_model() -> None:
    model = MLP()
    weights = [p for p in model.parameters() if p.dim() > 1]

    def decayed(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return classify(model, x, y) + 0.1 * sum(w.square().sum() for w in weights)

    def outer(_: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        inner = sum(p.square().sum() for p in model.parameters())
        return classify(model, x, y) + 0.1 * inner

    error = refused(model, loss=decayed)
    assert (error.rule, error.line) == ("CAP-2", decayed.__code__.co_firstlineno + 1)
    assert "through a variable" in error.problem
    assert all(p.grad is None for p in model.parameters())
    # The model under another name is the model.
    captured(model, loss=outer)
    scale = torch.ones((), requires_grad=True)
    stray = refused(model, loss=lambda m, x, y: classify(m, x, y) * scale)
    assert "requires a gradient" in stray.problem


def test_the_same_tensor_twice_in_a_batch_is_two_inputs() -> None:
    table = torch.randn(16, 12)

    def loss(model: nn.Module, x: Tensor, again: Tensor) -> Tensor:
        return F.cross_entropy(model(x * 2), again[:, :5].argmax(1))

    job = TrainingJob(MLP(), loss, AdamW(), Rows(table, table, batch=4), steps=2)
    assert check_against_eager(capture(job), job).difference < 1e-5


# ---- surroundings ---------------------------------------------------------------------------


def _autocast(_: Any, x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x @ torch.eye(16)


def test_cap_3__autocast_is_refused_inside_and_around() -> None:
    inside = refused(Net(_autocast))
    assert (inside.rule, inside.file) == ("CAP-3", "test_silent.py")
    assert inside.text == "return x @ torch.eye(16)"
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert "autocast" in refused(MLP()).problem


def test_cap_3__another_default_element_type_is_refused() -> None:
    job = CASES["mlp"].job()
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(CaptureError) as caught:
            capture(job)
    finally:
        torch.set_default_dtype(torch.float32)
    assert caught.value.rule == "CAP-3"


def test_cap_1__a_step_without_gradients_is_refused() -> None:
    with torch.no_grad():
        assert refused(MLP()).rule == "CAP-1"


# ---- wrappers, and what is not trained ------------------------------------------------------


@pytest.mark.parametrize(
    "wrap", [torch.compile, nn.DataParallel, lambda m: torch.compile(nn.DataParallel(m))]
)
def test_cap_1__the_module_inside_a_wrapper_is_captured(wrap: Callable[[nn.Module], Any]) -> None:
    plain = captured(MLP())
    wrapped = captured(wrap(MLP()))
    assert program_digest(wrapped.program) == program_digest(plain.program)
    assert any("the model inside" in r for r in wrapped.notes.remarks)


def test_cap_1__compiled_parts_are_run_as_they_are_written() -> None:
    plain = captured(MLP())
    model = MLP()
    model.l1.compile()
    model.act = torch.compile(F.relu)
    assert program_digest(captured(model).program) == program_digest(plain.program)


def test_cap_1__parameters_that_torch_would_leave_alone_are_left_alone() -> None:
    model = MLP()
    model.unused = nn.Linear(3, 3)
    made = captured(model, optimizer=AdamW(weight_decay=0.5))
    names = [v.name for v in made.program.parameters]
    assert [names[i] for i in made.program.trainable] == [
        "l1.weight",
        "l1.bias",
        "l2.weight",
        "l2.bias",
    ]
    assert any("unused.weight, unused.bias" in r for r in made.notes.remarks)
    first = torch.optim.SGD(model.l1.parameters(), lr=0.1)
    some = captured(model, optimizer=first)
    assert [names[i] for i in some.program.trainable] == ["l1.weight", "l1.bias"]
    assert any("the optimizer does not have them" in r for r in some.notes.remarks)
    second = torch.optim.SGD(model.unused.parameters(), lr=0.1)
    assert "does not depend" in refused(model, optimizer=second).problem


def test_evaluation_mode_is_remarked_on() -> None:
    assert captured(MLP(p=0.5)).notes.remarks == ()
    (remark,) = captured(MLP(p=0.5).eval()).notes.remarks
    assert "evaluation mode" in remark
    assert "drop" in remark


def test_cap_9__batch_norm_in_evaluation_mode_keeps_its_statistics() -> None:
    model = BatchNormed()
    model.norm.running_mean = torch.randn(16)
    assert captured(model).program.buffers
    assert not captured(model.eval()).program.buffers


def test_notes_tell_the_version_of_torch() -> None:
    assert captured(MLP()).notes.torch == torch.__version__
