"""A rule about large files judges the version that is shown, whatever the file became since."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.clients.python import RemoteError
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

POLICY = """
name = "small files"
extends = "default"

[[rule]]
name = "large"
agents = ["alice"]
actions = ["read", "search"]
paths = ["**"]
max_bytes = 100
verdict = "{verdict}"
"""

LARGE = "a long line of it\n" * 20


@pytest.mark.parametrize(("verdict", "code"), [("deny", "denied"), ("ask", "approval_required")])
@pytest.mark.parametrize("gone", [False, True], ids=["is small now", "is gone now"])
async def test_a_large_version_of_what_is_small_now(base: Path, verdict: str, code: str, gone: bool) -> None:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(POLICY.format(verdict=verdict))
    file = daemon.workspace / "a.txt"
    file.write_text(LARGE)
    with running(base):
        async with daemon.client("alice") as alice, daemon.client("bob") as bob:
            whole = (await bob.read_file("a.txt")).version_id
            await bob.write_file("a.txt", "small\n", mode="truncate", base=whole)
            if gone:
                file.unlink()
            else:
                assert (await alice.read_file("a.txt")).total_lines == 1
            for call in (alice.read_file("a.txt", at=whole), alice.get_diff("a.txt", from_=whole)):
                with pytest.raises(RemoteError) as refused:
                    await call
                assert refused.value.code == code
            assert "a long line" not in str(await alice.get_diff(from_=whole))
