"""No file descriptor is left: callers wait, calls are refused by a stable code, and the daemon serves on."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest

from orchestrator.api import sockets
from orchestrator.api.parameters import Replacement
from orchestrator.clients.python import FileAccess, RemoteError
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

LEFT_S = 60

CROWD = 150
"""Descriptors that it may take: fewer than the connections that one agent may have."""

FILES, FEW = 100, 80
"""Files that are edited, and as many that are made; and descriptors for that."""

STARTED_WITH = (
    "import resource, sys; n = int(sys.argv[1]); resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)); "
    "from orchestrator.daemon import main; sys.exit(main(sys.argv[2:]))"
)

PATIENT = (
    "import sys; from orchestrator.servers import socket; socket.PREAMBLE_TIMEOUT_S = 3600.0; "
    "from orchestrator.daemon import main; sys.exit(main(sys.argv[1:]))"
)
"""With it nobody who says nothing goes by himself."""


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(base)
    assert daemon.start()["ok"]
    yield daemon
    assert daemon.stop() == 0, daemon.log[-3000:]


def limit(daemon: RunningDaemon, more: int | None) -> None:
    """So many more descriptors than it has; None: as many as it wants."""
    assert daemon.process is not None
    used = max(map(int, os.listdir(f"/proc/{daemon.process.pid}/fd")))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (most if more is None else used + 1 + more, most))


CALLS: list[Callable[[FileAccess], Awaitable[object]]] = [
    lambda files: files.read_file("a.py"),
    lambda files: files.read_file("large.txt", start=5),
    lambda files: files.list_files("."),
    lambda files: files.find_files("*.py"),
    lambda files: files.search_content("one"),
    lambda files: files.write_file("new.txt", "new\n", "create"),
    lambda files: files.write_file("huge.txt", "huge " * 100_000, "create"),
    lambda files: files.edit_file("a.py", [Replacement(search="one", replace="two")]),
    lambda files: files.edit_file("a.py", [Replacement(search="two", replace="one")]),
    lambda files: files.file_history("a.py"),
    lambda files: files.blame("a.py"),
    lambda files: files.get_diff("a.py"),
    lambda files: files.journal_verify(),
    lambda files: files.journal_rebuild(),
    lambda files: files.workspace_check(),
    lambda files: files.status(),
]


async def test_calls_are_refused_and_the_daemon_serves_on(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.py").write_text("one = 1\n")
    (daemon.workspace / "large.txt").write_text("0123456789\n" * 50_000)
    async with daemon.client("alice") as files, daemon.client() as person:
        met = set[str]()
        for more in (0, 1, 2, 3, 5, 8):
            limit(daemon, more)
            for call in CALLS:
                try:
                    await call(files if call in CALLS[:-4] else person)
                except RemoteError as error:
                    met.add(error.code)
        limit(daemon, None)
        assert "descriptors_exhausted" in met
        assert met <= {"descriptors_exhausted", "already_exists", "search_not_found"}
        assert (await files.read_file("a.py")).text
        assert (await files.write_file("after.txt", "after\n", "create")).status == "applied"
        assert (await person.journal_verify()).problems == ()
        assert (await person.workspace_check()).differences == ()
        assert (await person.status()).health.state == "ok"


async def test_a_change_and_its_undo_of_more_files_than_descriptors(daemon: RunningDaemon) -> None:
    """Whatever their number, few are open at once."""
    old = {f"d{number % 7}/old{number:03}.txt": f"{number}\n" for number in range(FILES)}
    new = [f"new{number % 7}/new{number:03}.txt" for number in range(FILES)]
    for path, text in old.items():
        (daemon.workspace / path).parent.mkdir(exist_ok=True)
        (daemon.workspace / path).write_text(text)
    edits = (f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{text}+more\n" for path, text in old.items())
    makes = (f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+new\n" for path in new)
    async with daemon.client("alice") as files, daemon.client() as person:
        limit(daemon, FEW)
        made = await files.apply_patch("".join((*edits, *makes)))
        assert made.status == "applied"
        assert {(daemon.workspace / path).read_text() for path in old} == {"more\n"}
        assert made.change is not None
        assert (await files.revert(made.change)).status == "applied"
        assert {path: (daemon.workspace / path).read_text() for path in old} == old
        assert not any((daemon.workspace / path).parent.exists() for path in new)
        assert (await person.workspace_check()).differences == ()


async def test_callers_wait_until_there_is_one_and_who_is_here_is_served(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as files:
        limit(daemon, CROWD)
        with ExitStack() as crowd, anyio.fail_after(LEFT_S):
            while "no more callers" not in daemon.log:
                caller = crowd.enter_context(socket.socket(socket.AF_UNIX))
                caller.connect(str(daemon.socket))
                caller.sendall(sockets.preamble("rpc", agent="crowd", client="test", toolset="full"))
                await files.session_status()
            assert (await files.write_file("a.txt", "a\n", "create")).status == "applied"
            assert (await files.read_file("a.txt")).text
    with anyio.fail_after(LEFT_S):
        async with daemon.client("bob") as files:
            assert (await files.write_file("b.txt", "b\n", "create")).status == "applied"


async def test_who_says_nothing_gives_way_to_who_comes(base: Path) -> None:
    daemon = RunningDaemon(base, module=("-c", PATIENT))
    assert daemon.start()["ok"]
    limit(daemon, 30)
    with ExitStack() as crowd:
        silent = [crowd.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(80)]
        for caller in silent:
            caller.connect(str(daemon.socket))
        with anyio.fail_after(LEFT_S):
            async with daemon.client("bob") as files:
                assert (await files.write_file("b.txt", "b\n", "create")).status == "applied"
                assert (await files.read_file("b.txt")).text
        silent[0].settimeout(LEFT_S)
        silent[-1].setblocking(False)
        assert silent[0].recv(1) == b"", "the first of them was closed"
        with pytest.raises(BlockingIOError):
            silent[-1].recv(1)
    assert daemon.stop() == 0, daemon.log[-3000:]


@pytest.mark.parametrize("few", [12, 16, 19, 20, 21, 24, 28])
def test_a_start_with_few_of_them_is_refused_and_the_next_one_serves(base: Path, few: int) -> None:
    """The first start of a workspace, and one with a journal: neither leaves what keeps later ones away."""
    for _ in range(2):
        limited = RunningDaemon(base, module=("-c", STARTED_WITH, str(few)))
        said = limited.start()
        limited.stop()
        assert said["ok"] or (said["code"], bool(said["hint"])) == ("descriptors_exhausted", True), said
        daemon = RunningDaemon(base)
        said = daemon.start()
        assert said["ok"], said
        assert daemon.stop() == 0


@pytest.mark.parametrize("few", [8, 10, 11, 12, 13])
def test_the_command_line_says_so_too(base: Path, few: int) -> None:
    """With none left even the end of the daemon's event loop fails, and says something else."""
    daemon = RunningDaemon(base)
    up = [sys.executable, "-m", "orchestrator", "up", "--json", "--workspace", str(daemon.workspace)]
    limited = ["bash", "-c", f'ulimit -n {few}; exec "$@"', "bash", *up]
    done = subprocess.run(limited, env=daemon.env, capture_output=True, text=True, check=False, timeout=LEFT_S)
    assert json.loads(done.stdout)["code"] == "descriptors_exhausted"
    assert "Traceback" not in done.stderr
