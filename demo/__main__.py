"""Play, tell, check. Exit code 0 only if everything agrees."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from demo import checks, past, reviewed, story
from demo.agents import agents
from demo.play import Play
from demo.props import shared_file
from demo.stage import DemoFailed, Stage, stage
from demo.telling import Teller


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("path", nargs="?", type=Path, default=Path(__file__).parent.parent)
    source = parser.parse_args().path.resolve()
    if not source.is_dir():
        parser.error(f"{source} is not a folder")
    teller = Teller()
    try:
        with stage(source) as made:
            ok = play(made, teller, source)
    except DemoFailed as error:
        print(f"\nNot as it should be: {error}", file=sys.stderr)
        ok = False
    teller.end(ok=ok)
    return 0 if ok else 1


def play(made: Stage, teller: Teller, source: Path) -> bool:
    """The whole story on one stage; whether everything agrees after it."""
    before = checks.snapshot(made.workspace)
    teller.chapter(f"A daemon on a copy of {source}")
    facts = made.up()
    teller.line(f"       {len(before)} files; the daemon is process {facts['pid']}, its journal in a folder of its own")
    with agents(made, alice="auto", bob="legacy") as (alice, bob):
        for agent in (alice, bob):
            hello = agent.hello
            teller.line(f"       {agent.name} is connected: MCP {hello['revision']}, {len(hello['tools'])} tools")
        shared = shared_file(made.workspace, alice)
        acts = Play(made, teller, alice, bob, shared)
        seen = story.same_time(acts)[1]
        aside = story.stale(acts, seen)
        story.overlap(acts, seen)
        reviewed.settled_by_a_model(acts)
        story.protected(acts)
        story.undo(acts, aside)
        past.outsider(acts)
        past.taken_back(acts)
        story.crash(acts)
    checks.history(made, teller, shared.path)
    after = checks.snapshot(made.workspace)
    own = {path for path in after if path.startswith("orchestrator-demo") and path not in before}
    return checks.agree(made, teller, before, frozenset({shared.path, story.PROTECTED, *own}))


if __name__ == "__main__":
    sys.exit(main())
