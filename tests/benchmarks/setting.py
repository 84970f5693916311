"""What every group of rows works with: a daemon on a folder of its own, the peers, and the measured file."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.benchmarks import fixtures
from tests.benchmarks.measuring import Row
from tests.benchmarks.peers import Peer, fetch_filesystem, fetch_largefile
from tests.daemon.daemon_process import RunningDaemon, running


class Setting(msgspec.Struct, frozen=True):
    """One run's surroundings. `scale` multiplies how often things are measured."""

    daemon: RunningDaemon
    text: str
    largefile: Peer
    filesystem: Peer
    peers_work: Path  # where the peers may write
    scale: float

    def times(self, n: int) -> int:
        return max(3, round(n * self.scale))

    def transport(self, agent: str) -> tuple[str, ...]:
        """What an agent starts to reach the daemon over MCP."""
        script = Path(sys.executable).with_name("orchestrator")
        return (str(script), "mcp", "--workspace", str(self.daemon.workspace), "--agent", agent)


@contextmanager
def setting(folder: Path, *, scale: float) -> Iterator[Setting]:
    """Everything is under /var/tmp while it runs: a disk, not memory, and a path short enough for a socket."""
    folder.mkdir(exist_ok=True)
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/var/tmp")).resolve()
    try:
        peers_work = base / "peers"
        peers_work.mkdir()
        with running(base) as daemon:
            yield Setting(
                daemon=daemon,
                text=fixtures.python_text(),
                largefile=fetch_largefile(folder),
                filesystem=fetch_filesystem(folder, peers_work),
                peers_work=peers_work,
                scale=scale,
            )
    finally:
        shutil.rmtree(base)


Rows = list[Row]
