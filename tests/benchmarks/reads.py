"""A hundred lines in the middle of a 20,000-line file."""

from __future__ import annotations

import subprocess

from tests.benchmarks.fixtures import MIDDLE
from tests.benchmarks.measuring import Row, Target, in_turns, plain
from tests.benchmarks.setting import Rows, Setting


async def rows(setting: Setting) -> Rows:
    """Beside a spawned `sed` that quits after the last line."""
    path = setting.daemon.workspace / "read.py"
    path.write_text(setting.text, encoding="utf-8")
    last = MIDDLE + 99
    command = ("sed", "-n", f"{MIDDLE},{last}p;{last}q", str(path))
    async with setting.daemon.client("reader") as files:

        async def read() -> None:
            answer = await files.read_lines("read.py", start=MIDDLE, end=last)
            assert answer.end == last

        contenders = {"ours": read, "sed": plain(lambda: subprocess.run(command, check=True, capture_output=True))}
        taken = await in_turns(contenders, setting.times(200), warm_up=5)
    return [
        Row(
            work="read_lines, 100 of 20,000, socket",
            ours=taken["ours"],
            peer="spawned sed -n",
            theirs=taken["sed"],
            target=Target(at_least=1.0),
        )
    ]
