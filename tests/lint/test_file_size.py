"""No file outgrows a reader: 500 lines, or an entry here with its reason."""

from tests.lint.tree import PACKAGES, files, name

LIMIT = 500
FOLDERS = (*PACKAGES, "tests", "examples", "deploy")
SUFFIXES = (".py", ".cpp", ".h", ".cu", ".cuh", ".proto")
# Path to the reason why the file stays whole.
ALLOWED: dict[str, str] = {}


def sizes() -> dict[str, int]:
    return {
        name(path): len(path.read_text(encoding="utf-8").splitlines())
        for path in files(FOLDERS, SUFFIXES)
    }


def test_files_stay_below_the_limit() -> None:
    assert {
        path: lines for path, lines in sizes().items() if lines > LIMIT and path not in ALLOWED
    } == {}


def test_the_list_of_exceptions_is_current() -> None:
    found = sizes()
    assert [path for path in ALLOWED if found.get(path, 0) <= LIMIT] == []
    assert all(ALLOWED.values())
