"""Commands that run in the workspace itself, confined and journalled, beside a bare spawn of the same program."""

from __future__ import annotations

import subprocess
import tempfile
from itertools import count
from pathlib import Path

import anyio

from tests.benchmarks.measuring import Row, Samples, Target, in_turns, plain
from tests.benchmarks.names import made
from tests.benchmarks.setting import Rows, Setting
from tests.daemon.daemon_process import RunningDaemon

SIZES = (30, 20_000)
OVER_SPAWN = Target(
    at_most_ms=30.0,
    why_missed="some 14 ms of processor time are four forks, the namespaces and their end, and each is a turn of the "
    "scheduler: it is 17 ms where two processors are idle, and 40 to 60 ms where three programs want each of them.",
)

POLICY = """
name = "ours"
extends = "default"

[[rule]]
name = "known"
agents = ["*"]
actions = ["run"]
paths = ["**"]
commands = ["true", "sh -c *", "sh -c * **"]
verdict = "allow"
"""


async def rows(setting: Setting) -> Rows:
    """In a small workspace and in a large one, each with a daemon of its own."""
    return [row for files in SIZES for row in await _in_workspace(files, setting.times(40))]


async def _in_workspace(files: int, times: int) -> Rows:
    with tempfile.TemporaryDirectory(prefix="o-", dir="/var/tmp") as base:
        daemon = RunningDaemon(Path(base).resolve(), executed=True)
        (daemon.state_dir / "policy.toml").write_text(POLICY, encoding="utf-8")
        await anyio.to_thread.run_sync(made, daemon.workspace, files)
        daemon.start()
        try:
            taken = await _taken(daemon, times)
        finally:
            daemon.stop()
    bare = taken.pop("bare")
    return [
        Row(
            work=f"run_command, {what}, over a bare spawn: {files:,} files",
            ours=Samples([value - bare.median for value in samples.values]),
            peer="spawn true",
            theirs=bare,
            target=OVER_SPAWN if what == "true" else Target(),
        )
        for what, samples in taken.items()
    ]


async def _taken(daemon: RunningDaemon, times: int) -> dict[str, Samples]:
    async with daemon.client("runner") as runner:

        async def nothing() -> None:
            assert (await runner.run_command(["true"])).exit_code == 0

        numbers = count()

        async def write() -> None:
            script = f"echo {next(numbers)} > made"
            assert len((await runner.run_command(["sh", "-c", script])).changes) == 1

        bare = plain(lambda: subprocess.run(("true",), check=True))
        return await in_turns({"true": nothing, "one file": write, "bare": bare}, times)
