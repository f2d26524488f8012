"""Rule ids: the specification, the code and the tests name the same rules.

A rule is defined in ``docs/spec/*.md`` by a line that starts ``**ABC-7 (title).**``; its text goes
on to the next rule or heading. Code cites it as ``ABC-7``; a test of it is a function named
``test_abc_7__what_it_shows`` (or ``test_abc_7__abc_8__...`` for two at once).
"""

import ast
import re
from collections import Counter
from pathlib import Path

from tests.lint.tree import PACKAGES, ROOT, files, name, syntax

DEFINITION = re.compile(r"^(?:> |[-*] )?\*\*([A-Z]{2,4}-\d+) \(", re.MULTILINE)
END_OF_RULE = re.compile(r"^#", re.MULTILINE)
CITATION = re.compile(r"(?<![\w-])([A-Z]{2,4})-(\d+)\b")
TEST_NAME = re.compile(r"^test_((?:[a-z]{2,4}_\d+__)+)")
# Words of the same form that name no rule.
NOT_RULES = frozenset(
    {"AES", "AVX", "BF", "CPU", "CRC", "CUDA", "FNV", "FP", "GPT", "IEEE", "INT", "IP", "ISO"}
    | {"RFC", "RSA", "SHA", "SSE", "TLS", "ULP", "UTC", "UTF"}
)
SOURCES = (".py", ".cpp", ".h", ".cu", ".cuh", ".proto", ".pyi")
LINT = ROOT / "tests" / "lint"


def rules() -> dict[str, str]:
    """Return the text of every rule of the specification by its id."""
    found = {}
    for path in sorted((ROOT / "docs" / "spec").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        starts = list(DEFINITION.finditer(text))
        for match, following in zip(starts, [*starts[1:], None], strict=True):
            end = following.start() if following else len(text)
            body = text[match.end() : end]
            found[match[1]] = END_OF_RULE.split(body, maxsplit=1)[0]
    return found


def defined_ids() -> list[str]:
    """Return every definition, repeated ids included."""
    return [
        match
        for path in sorted((ROOT / "docs" / "spec").glob("*.md"))
        for match in DEFINITION.findall(path.read_text(encoding="utf-8"))
    ]


def sources() -> list[Path]:
    """Return every file whose words may cite a rule: code, tests and the specification."""
    code = [
        path
        for path in files((*PACKAGES, "tests", "examples"), SOURCES)
        if LINT not in path.parents
    ]
    return [*code, *files(("docs",), (".md",))]


def cited_by_tests() -> dict[str, list[str]]:
    """Return the tests that name each rule id."""
    found: dict[str, list[str]] = {}
    for path in files(("tests",)):
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                match = TEST_NAME.match(node.name)
                for part in match[1].removesuffix("__").split("__") if match else ():
                    rule = part.upper().replace("_", "-")
                    found.setdefault(rule, []).append(f"{name(path)}::{node.name}")
    return found


def test_the_specification_defines_each_rule_once() -> None:
    assert [rule for rule, count in Counter(defined_ids()).items() if count > 1] == []
    assert rules(), "docs/spec holds no rule"


def test_every_cited_rule_is_defined() -> None:
    known = rules()
    missing = [
        f"{name(path)}:{number} cites {match[0]}"
        for path in sources()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for match in CITATION.finditer(line)
        if match[1] not in NOT_RULES and match[0] not in known
    ]
    assert missing == []


def test_every_named_test_has_its_rule() -> None:
    known = rules()
    assert {rule: where for rule, where in cited_by_tests().items() if rule not in known} == {}


def test_every_must_has_a_test() -> None:
    covered = cited_by_tests()
    assert [
        rule
        for rule, text in rules().items()
        if re.search(r"\bMUST\b", text)
        if rule not in covered
    ] == []
