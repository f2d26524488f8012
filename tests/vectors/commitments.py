"""Makes ``commitments.json``: trees, digests, openings and signatures, lies included.

``python -m tests.vectors.commitments`` writes the file; with ``--check`` it compares and writes
nothing. A consumer may assert every row: an accepted one gives exactly the stated result, one
with ``error`` is refused by that rule (docs/spec/commitments.md).

Format. Digests, bytes and signatures are lower-case hex. Leaf hash ``i`` of every tree is the
hash of the leaf of one byte ``i``.

* ``domains``: label -> digest of the payload ``00 01 02`` under it (COM-1).
* ``trees``: roots over the first ``size`` leaf hashes; ``paths`` of leaf ``index``; ``growth``:
  proofs that ``old`` leaves are the start of ``new`` ones, their roots being those of ``trees``.
* ``tensors``: ``dtype``, ``shape``, ``data`` and the ``digest``.
* ``states``: the header's fields, tensor digests, the header's digest, the root, and the path of
  each tensor.
* ``traces`` and ``runs``: what the leaves hold, and the root.
* ``signatures``: secret seed, label, body and the Ed25519 signature.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from identic.proofs import merkle, runlog, trace
from identic.proofs.signatures import SigningKey
from identic.proofs.state import StateCommitment
from identic.proofs.tensors import tensor_digest
from identic.protocol.commitments import StateHeader, header_digest
from identic.protocol.dtypes import DType
from identic.protocol.hashing import Domain, leaf_hash, sha256, tagged
from identic.protocol.ids import Count, Digest, StepIndex, Unsigned
from identic.protocol.tensors import TensorType

PATH = Path(__file__).with_suffix(".json")
LEAVES = [leaf_hash(bytes([i])) for i in range(13)]
DIGESTS = tuple(sha256(bytes([i])) for i in range(5))
OTHER = sha256(b"other")


def _hex(hashes: Any) -> list[str]:
    return [h.hex() for h in hashes]


def _trees() -> dict[str, Any]:
    sizes = (1, 2, 3, 4, 7, 8, 13)
    return {
        "roots": [merkle.root(LEAVES[:size]).hex() for size in range(len(LEAVES) + 1)],
        "paths": [
            {"size": n, "index": i, "path": _hex(merkle.path(LEAVES[:n], i))}
            for n in sizes
            for i in range(n)
        ],
        "bad_paths": _bad_paths(),
        "growth": [
            {"old": old, "new": new, "proof": _hex(merkle.consistency(LEAVES[:new], old))}
            for new in sizes
            for old in range(new + 1)
        ],
        "bad_growth": _bad_growth(),
    }


def _bad_paths() -> list[dict[str, Any]]:
    path = merkle.path(LEAVES[:7], 4)
    rows: list[tuple[int, int, tuple[Digest, ...]]] = [
        (7, 7, path),
        (0, 0, ()),
        (7, 4, path[:-1]),
        (7, 4, (*path, OTHER)),
        (7, 6, path),
        (1, 0, (OTHER,)),
    ]
    return [{"size": n, "index": i, "path": _hex(p), "error": "COM-7"} for n, i, p in rows]


def _bad_growth() -> list[dict[str, Any]]:
    proof = merkle.consistency(LEAVES[:7], 3)
    rows: list[tuple[int, int, tuple[Digest, ...]]] = [
        (3, 7, proof[:-1]),
        (3, 7, (*proof, OTHER)),
        (3, 7, (OTHER, *proof[1:])),
        (3, 7, ()),
        (4, 7, proof),
        (0, 7, proof),
        (7, 7, (OTHER,)),
        (7, 3, proof),
    ]
    return [{"old": old, "new": new, "proof": _hex(p), "error": "COM-8"} for old, new, p in rows]


def _tensors() -> list[dict[str, Any]]:
    kinds = [
        (DType.FLOAT32, ()),
        (DType.FLOAT32, (0,)),
        (DType.FLOAT32, (0, 3)),
        (DType.FLOAT32, (2, 3)),
        (DType.FLOAT32, (3, 2)),
        (DType.BFLOAT16, (3,)),
        (DType.INT64, (2,)),
        (DType.INT32, (2, 1, 2)),
        (DType.BOOL, (3,)),
        (DType.UINT8, (4096,)),
        (DType.UINT8, (4097,)),
        (DType.UINT8, (12289,)),
    ]
    rows = []
    for dtype, shape in kinds:
        kind = TensorType.of(dtype, shape)
        data = bytes(i % 251 for i in range(kind.nbytes))
        digest = tensor_digest(kind, data).hex()
        told = {"data": data.hex()} if len(data) < 100 else {"counting": len(data)}
        rows.append({"dtype": dtype.label, "shape": list(shape), **told, "digest": digest})
    return rows


def _states() -> list[dict[str, Any]]:
    rows = []
    for tensors in (1, 2, 5):
        header = StateHeader(OTHER, Unsigned(7), StepIndex(3), Count(96))
        state = StateCommitment(header, DIGESTS[:tensors])
        rows.append(
            {
                "program": OTHER.hex(),
                "seed": 7,
                "step": 3,
                "cursor": 96,
                "tensors": _hex(state.digests),
                "header": header_digest(header).hex(),
                "root": state.root.hex(),
                "paths": [_hex(state.opening(i)) for i in range(tensors)],
            }
        )
    return rows


def _signatures() -> list[dict[str, str]]:
    key = SigningKey(bytes(range(32)))
    return [
        {
            "seed": bytes(range(32)).hex(),
            "party": key.party.hex(),
            "domain": domain.value,
            "body": body.hex(),
            "signature": key.sign(domain, body).hex(),
        }
        for domain, body in ((Domain.RUN, b""), (Domain.RUN, b"body"), (Domain.LOG, b"body"))
    ]


def table() -> dict[str, Any]:
    """The whole file."""
    return {
        "about": "Commitments (docs/spec/commitments.md); format: commitments.py.",
        "domains": {domain.value: tagged(domain, b"\x00\x01\x02").hex() for domain in Domain},
        "trees": _trees(),
        "tensors": _tensors(),
        "states": _states(),
        "traces": [
            {
                "step": 3,
                "digests": _hex(DIGESTS[:n]),
                "root": trace.trace_root(3, DIGESTS[:n]).hex(),
            }
            for n in (1, 4, 5)
        ],
        "runs": [
            {
                "cadence": 5,
                "steps": 18,
                "states": _hex(DIGESTS[:n]),
                "root": runlog.run_root(DIGESTS[:n], 5, 18).hex(),
            }
            for n in (1, 3, 5)
        ],
        "signatures": _signatures(),
    }


def text() -> str:
    """Return the file's text: one list of digests a line."""
    made = json.dumps(table(), indent=1)
    return re.sub(r"\[\s+([^][{}]*?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", made) + "\n"


def main() -> int:
    """Write the file, or compare it with ``--check``; 1 when it differs."""
    made = text()
    if "--check" in sys.argv[1:]:
        return int(PATH.read_text() != made)
    PATH.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
