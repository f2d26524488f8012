"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

from tests.helpers.effort import examples

settings.register_profile("effort", max_examples=examples(100))
settings.load_profile("effort")
