"""One daemon per module: attacks leave it as it was, or the next test says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.security.hostile_workspace import HostileWorkspace, fort_in_tmp


@pytest.fixture(scope="module")
def hostile() -> Iterator[HostileWorkspace]:
    with fort_in_tmp() as built:
        yield built
