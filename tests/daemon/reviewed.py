"""A daemon with reviewers that do as a script says: `python -m tests.daemon.reviewed SCRIPT <daemon's arguments>`.

The script is a JSON object: for each reviewer what it does, call by call; its last line is for all calls
after. What each was asked is appended to `SCRIPT.asked`, a line of JSON for each.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread
from typing_extensions import override

from orchestrator.core.events.conflicts import ReviewUsage
from orchestrator.daemon import Daemon, serve
from orchestrator.daemon_config import parse
from orchestrator.engine.services import Services
from orchestrator.logs import start_logging
from orchestrator.ports.reviewers import RegionText, Reviewer, ReviewFailure, ReviewReply, ReviewRequest
from orchestrator.workspace.disk import ignore_lease_breaks
from tests.daemon.clocked import put_forward


class Act(msgspec.Struct, forbid_unknown_fields=True):
    """One answer."""

    verdict: str = ""  # "" with `fails` or `hangs`
    lines: dict[int, list[str]] = {}  # by region
    reason: str = ""
    fails: str = ""  # a message
    breaks: str = ""  # an error that nobody foresaw, with these words
    odd_usage: bool = False  # of types that no journal can hold
    hangs: bool = False
    after: str = ""  # a named pipe: it answers when somebody has opened it for writing


class Scripted:
    """One reviewer."""

    def __init__(self, name: str, acts: list[Act], asked: Path) -> None:
        self._name, self._acts, self._asked = name, acts, asked

    def asked(self, request: ReviewRequest) -> ReviewUsage:
        return ReviewUsage(model="scripted-1", prompt_hash="0f" * 32)

    async def review(self, request: ReviewRequest) -> ReviewReply:
        with self._asked.open("ab") as asked:
            asked.write(msgspec.json.encode({"reviewer": self._name, **msgspec.to_builtins(request)}) + b"\n")
        act = self._acts.pop(0) if len(self._acts) > 1 else self._acts[0]
        if act.hangs:
            await anyio.sleep_forever()
        if act.after:
            await to_thread.run_sync(partial(Path(act.after).read_bytes), abandon_on_cancel=True)
        if act.fails:
            raise ReviewFailure(act.fails)
        if act.breaks:
            raise ZeroDivisionError(act.breaks)
        usage = ReviewUsage(model="scripted-1", prompt_hash="0f" * 32, input_tokens=9, output_tokens=3)
        return ReviewReply(
            verdict=act.verdict,  # type: ignore[arg-type]
            regions=tuple(RegionText(region, tuple(lines)) for region, lines in act.lines.items()),
            reason=act.reason,
            usage=ReviewUsage(model=5, input_tokens=10**400) if act.odd_usage else usage,  # type: ignore[arg-type]
        )


class ReviewedDaemon(Daemon):
    """Knows the reviewers of a script."""

    script: Path

    @override
    def _reviewers(self, services: Services) -> Mapping[str, Reviewer]:
        acts = msgspec.json.decode(self.script.read_bytes(), type=dict[str, list[Act]])
        asked = self.script.with_suffix(".asked")
        return {name: Scripted(name, list(script), asked) for name, script in acts.items()}


def main(argv: list[str]) -> int:
    """As `orchestrator daemon`."""
    config = parse(argv[1:])
    start_logging()
    ignore_lease_breaks()
    daemon = ReviewedDaemon(config)
    daemon.script = Path(argv[0])
    put_forward(daemon.script.parent)
    return serve(daemon)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
