"""The place where an end-to-end test happens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.workspace_factory import Place


@pytest.fixture
def place(base: Path) -> Iterator[Place]:
    """A workspace without a daemon; whatever is started there is ended after the test."""
    made = Place(base)
    yield made
    made.clear()
