"""Names that are exchanged for links while the daemon looks at what a command changed: FAULTS row 28."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from orchestrator.clients.python import RemoteError
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.test_commands import POLICY, shell
from tests.daemon.test_undo import agrees

pytestmark = pytest.mark.anyio

PATIENCE_S = 60
SECRET = "what lies outside\n"
DIGEST = "sha256:" + hashlib.sha256(SECRET.encode()).hexdigest()

EXCHANGING = """
import os, sys
from orchestrator.daemon import main
from orchestrator.engine.external import batch_import
from orchestrator.workspace.local import LocalWorkspace

name, trap, call, work, *rest = sys.argv[1:]

def exchanging(method):
    def called(self, path, *args, **more):
        before = call == "read" and method.__name__ == "read"
        if before and str(path).startswith(name) and "made" in os.listdir(work):
            exchange()
        result = method(self, path, *args, **more)
        if call == "stat" and str(path).startswith(name) and "made" in os.listdir(work):
            exchange()
        return result
    return called

def exchange():
    os.remove(f"{work}/made")
    os.rename(f"{work}/{name}", f"{work}/away")
    os.symlink(trap, f"{work}/{name}")

LocalWorkspace.stat, LocalWorkspace.read = exchanging(LocalWorkspace.stat), exchanging(LocalWorkspace.read)
sys.exit(main(rest))
"""
"""A daemon in which, once the command made the file `made`, a name becomes a link right at a look at it."""


@pytest.fixture(params=["stat", "read"])
def call(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["a.txt", "src"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def daemon(base: Path, name: str, call: str) -> Iterator[RunningDaemon]:
    trap = base / "trap"
    if name == "src":
        trap.mkdir()
        (trap / "b.txt").write_text(SECRET)
    else:
        trap.write_text(SECRET)
    daemon = RunningDaemon(base, module=("-c", EXCHANGING, name, str(trap), call, str(base / "work")))
    (daemon.state_dir / "policy.toml").write_text(POLICY)
    (daemon.workspace / "a.txt").write_text("one\n")
    (daemon.workspace / "src").mkdir()
    (daemon.workspace / "src/b.txt").write_text("two\n")
    assert daemon.start()["ok"]
    yield daemon
    assert daemon.stop() == 0, daemon.log[-3000:]
    assert "Traceback" not in daemon.log, daemon.log[-3000:]
    assert (trap / "b.txt" if trap.is_dir() else trap).read_text() == SECRET, "nothing was changed outside"
    assert not trap.is_dir() or [item.name for item in trap.iterdir()] == ["b.txt"], "nothing was made outside"


async def test_a_link_is_swapped_in_while_its_effects_are_found(daemon: RunningDaemon, name: str) -> None:
    """What the link leads to comes neither into the journal nor into an answer, and the undo does not follow it."""
    async with daemon.client("claude") as claude, daemon.client() as person:
        answer = await shell(claude, "echo more >> a.txt; echo more >> src/b.txt; echo x > made")
        assert answer.status == "done"
        assert (daemon.workspace / name).is_symlink(), "the swap took place"
        assert answer.group is not None
        code = "done"
        try:
            await claude.revert(answer.group)
        except RemoteError as error:
            code = error.code
        assert code in ("done", "symlink_refused", "revert_impossible", "already_exists")
        assert (daemon.workspace / name).is_symlink(), "it is somebody's, and stays"
        page = await person.journal_query(limit=200)
        assert DIGEST not in str(page.entries)
        other = "src/b.txt" if name == "a.txt" else "a.txt"
        assert (await claude.read_file(other)).text is not None
        with anyio.fail_after(PATIENCE_S):  # the exchange itself is seen when the watcher hints at it
            while (await person.replay_check()).differences:
                pass
    await agrees(daemon)
