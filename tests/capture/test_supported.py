"""The tables of docs/models.md are those of the code."""

from __future__ import annotations

from tests.capture.supported import PAGE, written


def test_cap_4__the_page_lists_what_is_registered() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page, "run `python -m tests.capture.supported`"
    assert all(f"`{name}`" in page for name in ("mm", "scatter", "gelu", "bernoulli", "llama"))
