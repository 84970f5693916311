"""What a stop does not wait for."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from orchestrator.engine.external.batch_import import BatchImporter
from orchestrator.workspace.disk import Disk
from tests.crash.inside import living

pytestmark = pytest.mark.anyio


async def test_a_stop_does_not_wait_until_all_contents_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a million files that takes minutes; the next start goes on with them."""
    began = anyio.Event()

    async def keep(self: BatchImporter) -> None:
        began.set()
        await anyio.sleep_forever()

    monkeypatch.setattr(BatchImporter, "keep", keep)
    for folder in ("state", "work"):
        (tmp_path / folder).mkdir()
    with anyio.fail_after(60):
        async with living(tmp_path / "state", tmp_path / "work", Disk()):
            await began.wait()
