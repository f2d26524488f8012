"""Answers as JSON and as lines, errors in words, exit codes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.text import Text

from identic.node.cli import faults, main
from identic.node.cli.faults import Usage
from identic.node.cli.output import Answer, Output, columns, current, plain, use
from identic.node.cli.screens.report import Outcome
from identic.protocol.dtypes import DType
from identic.protocol.errors import Code, IdenticError, LocalError, ProtocolError
from identic.protocol.ids import Count, Digest
from identic.protocol.lowering import CaptureError

PROTOCOL = ProtocolError("RCP-4", Code.MALFORMED, got="noise", want="a receipt")
LOCAL = LocalError("the disk is full", remedy="buy another")


def test_values_become_json_without_loss() -> None:
    value = {
        "digest": Digest(bytes(32)),
        "count": Count(3),
        "type": DType.FLOAT32,
        "outcome": Outcome.FINE,
        "code": Code.LATE,
        "path": Path("a/b"),
        "list": (1, None, True),
        "nan": float("nan"),
        "half": 0.5,
    }
    read = json.loads(json.dumps(plain(value)))
    assert read == {
        "digest": "00" * 32,
        "count": 3,
        "type": "float32",
        "outcome": "fine",
        "code": "late",
        "path": "a/b",
        "list": [1, None, True],
        "nan": "nan",
        "half": 0.5,
    }


def test_what_has_no_json_form_is_our_own_mistake() -> None:
    with pytest.raises(TypeError):
        plain(object())


def test_with_json_standard_output_is_one_object_and_progress_goes_elsewhere() -> None:
    out, err = io.StringIO(), io.StringIO()
    output = Output(json=True, stdout=out, stderr=err)
    output.say("working")
    output.answer(Answer({"a": 1}, ["for people"]))
    assert json.loads(out.getvalue()) == {"a": 1}
    assert err.getvalue() == "working\n"


def test_a_pipe_gets_plain_lines_that_are_not_wrapped() -> None:
    out = io.StringIO()
    output = Output(stdout=out)
    assert not output.live
    output.say(Text("x" * 300, style="bold red"))
    output.answer(Answer({}, [Text("green", style="green")]))
    assert out.getvalue() == "x" * 300 + "\ngreen\n"


def test_columns_align_and_leave_no_space_at_the_end() -> None:
    lines = [line.plain for line in columns([["a", "1"], ["long", "22", "x"]], right=(1,))]
    assert lines == ["a      1", "long  22  x"]


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (PROTOCOL, 1, "refused"),
        (LOCAL, 3, "fault"),
        (Usage("which?", remedy="that"), 2, "usage"),
        (IdenticError("odd"), 3, "fault"),
    ],
)
def test_an_error_has_its_exit_code_and_its_words(
    error: IdenticError, code: int, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert faults.report(error, Output(json=True)) == code
    said = capsys.readouterr()
    assert json.loads(said.out)["error"]["kind"] == kind
    assert said.err.strip()


def test_every_cause_of_a_refusal_says_what_to_do() -> None:
    for code in Code:
        error = ProtocolError("ENC-1", code, got="a", want="b")
        assert faults.remedy_of(error)


def test_a_refused_capture_shows_the_place_and_the_advice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = CaptureError("CAP-2", "it depends on a value.", advice="use torch.where.")
    assert faults.report(error, Output()) == 1
    said = capsys.readouterr().err
    assert "cannot capture" in said
    assert "use torch.where." in said


def answered(monkeypatch: pytest.MonkeyPatch, function: object) -> int:
    """Run ``identic doctor`` with its function replaced."""
    monkeypatch.setattr("identic.node.cli.doctor.doctor", function)
    return main.run(["doctor", "--json"])


def test_an_unexpected_error_is_one_line_and_ends_with_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> Answer:
        """Break."""
        raise ZeroDivisionError("inner")

    monkeypatch.delenv(faults.DEBUG, raising=False)
    assert answered(monkeypatch, broken) == 3
    said = capsys.readouterr()
    assert "unexpected ZeroDivisionError: inner" in said.err
    assert "Traceback" not in said.err
    assert json.loads(said.out)["error"]["kind"] == "fault"
    monkeypatch.setenv(faults.DEBUG, "1")
    assert answered(monkeypatch, broken) == 3
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("yes", "code", "want"), [(True, None, 0), (False, None, 1), (True, 130, 130)]
)
def test_the_answer_decides_the_exit_code(
    yes: bool, code: int | None, want: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer() -> Answer:
        """Answer."""
        assert current().json
        return Answer({}, yes=yes, code=code)

    assert answered(monkeypatch, answer) == want


def test_an_interrupt_is_not_a_crash(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> Answer:
        """Be interrupted."""
        raise KeyboardInterrupt

    assert answered(monkeypatch, interrupted) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_reader_that_leaves_is_no_error() -> None:
    code = (
        "import sys, typing; from identic.node.cli import doctor, main, output;"
        "doctor.doctor = lambda: output.Answer({}, ['x' * 1000] * 1000);"
        "doctor.doctor.__doc__ = 'x';"
        "sys.exit(main.run(['doctor']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait() == faults.UNREAD


def test_the_output_of_a_command_is_the_one_in_use() -> None:
    output = Output(stdout=io.StringIO())
    use(output)
    assert current() is output
