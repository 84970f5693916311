"""Events that are about many files, as the terminal shows them: a few names, and how many more."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import closing

import pytest

from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

FILES = 40
SHOWN = "f00.txt, f01.txt, f02.txt, f03.txt, f04.txt, f05.txt and 34 more"


def patch() -> str:
    """A file each, with its number in it."""
    return "".join(f"--- /dev/null\n+++ b/f{n:02}.txt\n@@ -0,0 +1 @@\n+{n}\n" for n in range(FILES))


def terminal(daemon: RunningDaemon, *words: str) -> Generator[str, None, None]:
    """The lines that a command prints, as they come."""
    command_line = [sys.executable, "-m", "orchestrator", *words, "--workspace", str(daemon.workspace)]
    with subprocess.Popen(command_line, env=daemon.env, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            yield from running.stdout
        finally:
            running.kill()


@pytest.mark.parametrize("words", [("log", "--kind", "change_applied"), ("journal", "query", "--agent", "alice")])
async def test_a_line_names_a_few_and_json_all(daemon: RunningDaemon, words: tuple[str, ...]) -> None:
    async with daemon.client("alice") as alice:
        assert (await alice.apply_patch(patch())).status == "applied"
    (line,) = (line for line in terminal(daemon, *words) if "change_applied" in line)
    assert line.endswith(f"  {SHOWN}\n")
    entries = command(daemon, *words)[1]["entries"]
    (applied,) = (entry for entry in entries if entry["kind"] == "change_applied")
    assert [item["path"] for item in applied["paths"]] == [f"f{n:02}.txt" for n in range(FILES)]


async def test_a_followed_event_names_a_few(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        await alice.apply_patch(patch())
    with closing(terminal(daemon, "log", "--follow", "--kind", "change_applied", "--from", "@0")) as lines:
        assert next(lines).endswith(f"change_applied  {SHOWN}\n")
