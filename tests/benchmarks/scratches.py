"""A command in a scratch tree of 20,000 files: the first one, and later ones among changes by others."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from orchestrator.clients.python import FileAccess
from tests.benchmarks.measuring import Row, Samples, Target
from tests.benchmarks.setting import Rows, Setting
from tests.benchmarks.watching import baseline_done, made
from tests.daemon.daemon_process import running

FILES = 20_000
CHANGED = 20

POLICY = """
name = "bench"
extends = "default"

[[rule]]
name = "known"
agents = ["*"]
actions = ["run"]
paths = ["**"]
commands = ["true"]
verdict = "allow"
"""


async def rows(setting: Setting) -> Rows:
    """`true` from the call to its answer. Only the first one copies the tree."""
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/var/tmp")).resolve()
    first, later = Samples([]), Samples([])
    try:
        (base / "work").mkdir(mode=0o700)
        (base / "state").mkdir(mode=0o700)
        (base / "state/policy.toml").write_text(POLICY)
        paths = made(base / "work", FILES)
        with running(base) as daemon:
            async with daemon.client() as person:
                await baseline_done(person)
            async with daemon.client("runner") as files:
                first.values.append(await _ran(files))
                for turn in range(setting.times(10)):
                    for path in paths[turn :: FILES // CHANGED]:
                        path.write_text(f"after {turn}\n")
                    later.values.append(await _ran(files))
    finally:
        shutil.rmtree(base)
    none = Samples([], "no peer copies the tree")
    within = Target(at_most_ms=1000)
    return [
        Row(work=f"run_command true, scratch, {FILES:,} files, first", ours=first, peer="none", theirs=none),
        Row(
            work=f"run_command true, scratch, {FILES:,} files, {CHANGED} changed since the last",
            ours=later,
            peer="none",
            theirs=none,
            target=within,
        ),
    ]


async def _ran(files: FileAccess) -> float:
    """In ms."""
    start = time.perf_counter()
    answer = await files.run_command(["true"], mode="scratch")
    assert (answer.status, answer.exit_code) == ("done", 0), answer
    return (time.perf_counter() - start) * 1e3
