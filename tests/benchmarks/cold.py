"""From the start of the stdio transport to its answer to tools/list where no daemon runs, among 50,000 files."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from tests.benchmarks.measuring import Row, Samples, Target
from tests.benchmarks.setting import Rows, Setting
from tests.benchmarks.starts import listed_tools
from tests.end_to_end.workspace_factory import Place

FILES = 50_000


async def rows(setting: Setting) -> Rows:
    """Each time the daemon that came up is killed, and the next one starts from nothing."""
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/var/tmp")).resolve()
    place = Place(base)
    samples = Samples([])
    try:
        for number in range(FILES):
            folder = place.workspace / str(number // 500)
            if not number % 500:
                folder.mkdir()
            (folder / f"{number}.txt").write_text(f"{number}\n")
        transport = place.transport("--agent", "starter")
        for _ in range(setting.times(10)):
            start = time.perf_counter()
            listed_tools((transport.command, *transport.args), transport.env)
            samples.values.append((time.perf_counter() - start) * 1e3)
            place.up()  # wait for the one that was coming up, so that it can be ended
            place.clear()
    finally:
        place.clear()
        shutil.rmtree(base)
    none = Samples([], "no peer starts a daemon")
    work = f"stdio transport: no daemon, {FILES:,} files, to tools/list"
    return [Row(work=work, ours=samples, peer="none", theirs=none, target=Target(at_most_ms=150.0))]
