"""A daemon whose journal's disk is in trouble while a file says so: `python -m tests.daemon.failing SWITCH …`.

SWITCH holds `full` (no write of the journal finds space), `sync` (every sync fails), or is not there. With
`--at STEP KIND` it is made when that step is reached; KIND `fill` fills the real disk of SWITCH instead, and
`defect` makes that step raise what nobody foresaw.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import apsw

from orchestrator.daemon import Daemon, serve
from orchestrator.daemon_config import parse
from orchestrator.journal import database_file
from orchestrator.logs import start_logging
from orchestrator.workspace.disk import ignore_lease_breaks
from tests.journal.driver import Driver
from tests.journal.simulated_disk import Call, Disk, Kind, coded, failed

SECRET = "what a trace may quote"


class Switched(Disk):
    """Its trouble is what the file says."""

    def __init__(self, name: str, switch: Path) -> None:
        super().__init__(name)
        self._switch = switch

    def meet(self, call: Call, path: str) -> Kind | None:
        if call in ("write", "sync"):
            with suppress(FileNotFoundError):
                kind = self._switch.read_text()
                if kind == "sync" and call == "sync":
                    raise failed(call)
                if kind == "full" and call == "write" and path.endswith("-wal"):
                    raise coded(apsw.FullError("database or disk is full"), apsw.SQLITE_FULL)
        return None


def fill(file: Path) -> None:
    """Take every block that the disk has left."""
    with file.open("ab", buffering=0) as taken:
        for size in (1 << 20, 4096):
            with suppress(OSError):
                while taken.write(bytes(size)) == size:
                    pass


def main(argv: list[str]) -> int:
    """As `orchestrator daemon`."""
    switch, rest = Path(argv[0]), argv[1:]
    at, kind = None, ""
    if rest[0] == "--at":
        at, kind, rest = rest[1], rest[2], rest[3:]
    met: list[str] = []

    def step(name: str) -> None:
        if name == at and not met:
            met.append(name)
            if kind == "fill":
                fill(switch)
            elif kind == "defect":
                raise RuntimeError(SECRET)
            else:
                switch.write_text(kind)

    config = parse(rest)
    start_logging()
    ignore_lease_breaks()
    if kind != "fill":
        disk = Switched("switched", switch)
        database_file.sqlite3 = Driver(disk.name)  # type: ignore[assignment, attr-defined]
    return serve(Daemon(config, step=step))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
