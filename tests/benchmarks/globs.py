"""Globs: one made to be slow on a path made for it, and an ordinary one on many paths."""

from __future__ import annotations

from orchestrator.core.globs import Globs
from orchestrator.core.ids import WorkspacePath
from tests.benchmarks.measuring import Row, Target, in_turns, plain
from tests.benchmarks.setting import Rows, Setting

HOSTILE = "**/" + "*a" * 127 + "/" + "*a" * 127 + "b"
DEEP = WorkspacePath("/".join("a" * 255 for _ in range(256)))
PATHS = [WorkspacePath(f"src/part_{n % 50}/deep/name_{n}.{'py' if n % 3 else 'md'}") for n in range(50_000)]


async def rows(setting: Setting) -> Rows:
    """Compiling is part of it: a call compiles its globs anew."""
    taken = await in_turns(
        {
            "hostile": plain(lambda: Globs([HOSTILE]).match(DEEP)),
            "many": plain(lambda: sum(map(Globs(["src/**/name_*.py", "!*.md"]).match, PATHS))),
        },
        setting.times(10),
    )
    return [
        Row(work="glob of 2 x 255 letters, 256 levels of 255", ours=taken["hostile"], target=Target(at_most_ms=10)),
        Row(work="globs on 50,000 paths", ours=taken["many"]),
    ]
