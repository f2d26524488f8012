"""Loading a user's job file, in the submitter's own process."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from identic.node.capture.job import TrainingJob
from identic.node.capture.places import place_of_error
from identic.protocol.lowering import CaptureError

DEFAULT_NAME = "job"


def load_job(target: str) -> TrainingJob:
    """The job that ``target``, ``file.py:name``, stands for.

    ``name`` is a function without arguments that returns a ``TrainingJob``, or a
    ``TrainingJob`` itself; ``job`` when it is left out. The file's folder is on the import
    path while it runs, as it is for ``python file.py``.

    Raises:
        CaptureError: the file, the name or what it returns is not a job (CAP-1).
    """
    file, _, name = target.partition(":")
    path = Path(file)
    # CAP-1: a job is named by an existing Python file and a function in it.
    if not path.is_file():
        raise CaptureError("CAP-1", f"there is no file {file}.", advice="give file.py:function.")
    module = _run(path.resolve())
    found = getattr(module, name or DEFAULT_NAME, None)
    if found is None:
        raise CaptureError(
            "CAP-1",
            f"{path.name} has no {name or DEFAULT_NAME}.",
            advice="define a function of that name that returns an identic.TrainingJob.",
        )
    if callable(found) and not isinstance(found, TrainingJob):
        try:
            found = found()
        except CaptureError:
            raise
        except Exception as error:
            raise _raised(f"{name or DEFAULT_NAME}()", error) from error
    if not isinstance(found, TrainingJob):
        raise CaptureError(
            "CAP-1",
            f"{name or DEFAULT_NAME} gives a {type(found).__name__}, not an identic.TrainingJob.",
            advice="return an identic.TrainingJob.",
        )
    return found


def _run(path: Path) -> ModuleType:
    """Execute a Python file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise CaptureError(
            "CAP-1", f"{path.name} is not a Python file.", advice="give file.py:function."
        )
    module = importlib.util.module_from_spec(spec)
    folder = str(path.parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except CaptureError:
        raise
    except Exception as error:
        raise _raised(path.name, error) from error
    finally:
        sys.path.remove(folder)
    return module


def _raised(what: str, error: Exception) -> CaptureError:
    text = " ".join(str(error).split())[:300]
    return CaptureError(
        "CAP-1",
        f"{what} raises {type(error).__name__}: {text}",
        advice="run the file with python first; it must load and build the job without an error.",
        place=place_of_error(error),
    )
