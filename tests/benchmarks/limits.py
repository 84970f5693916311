"""What the machine itself takes, and our diff and merge beside git's."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Sequence
from pathlib import Path

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.merge import LineMerge, Merged
from orchestrator.core.text.merging.automatic_merge import AutomaticMerge, merge_automatically
from orchestrator.core.text.unified_diff import Side, unified
from tests.benchmarks.fixtures import edited, places
from tests.benchmarks.measuring import Row, Samples, Target, in_turns, plain
from tests.benchmarks.setting import Rows, Setting

LOG_FULL_COMMITS = 1500
"""After so many SQLite writes its log from the start again; a commit that need not grow it is many times cheaper."""

COMPILED = (
    "git merges in compiled code; ours aligns lines in compiled code and works out the regions in Python. "
    "The target was set where a spawned git merge-file took 25 ms for 25 + 25 edits, the start of a program included."
)
IMPORTS_READ = f"{COMPILED} Besides, the imports and strings of all three texts are read before a rule may settle it."


async def rows(setting: Setting) -> Rows:
    """Bare limits stand in the column of the peers, for the rows above to be held against."""
    folder = setting.peers_work / "limits"
    folder.mkdir()
    return [*await _disk(setting, folder), *await _texts(setting, folder)]


async def _disk(setting: Setting, folder: Path) -> Rows:
    handle = os.open(folder / "synced", os.O_WRONLY | os.O_CREAT, 0o600)
    base = sqlite3.connect(folder / "full.db", isolation_level=None)
    try:
        base.execute("PRAGMA journal_mode=WAL")
        base.execute("PRAGMA synchronous=FULL")
        base.execute("CREATE TABLE event (seq INTEGER PRIMARY KEY, body BLOB NOT NULL)")
        content = setting.text.encode()

        def sync() -> None:
            os.pwrite(handle, content, 0)
            os.fsync(handle)

        def commit() -> None:
            base.execute("BEGIN IMMEDIATE")
            base.execute("INSERT INTO event (body) VALUES (?)", (b"x" * 300,))
            base.execute("COMMIT")

        bare = {
            "one FULL commit, log growing": plain(commit),
            "spawn true": plain(lambda: _program("true")),
            f"write {len(content) // 1024} KiB + fsync": plain(sync),
        }
        taken: dict[str, Samples] = {}
        for name, work in bare.items():  # not in turns: what follows a large write pays for it too
            taken |= await in_turns({name: work}, setting.times(50))
        for _ in range(LOG_FULL_COMMITS):
            commit()
        taken |= await in_turns({"one FULL commit, log reused": plain(commit)}, setting.times(50))
    finally:
        base.close()
        os.close(handle)
    return [Row(work="limit", ours=Samples([]), peer=name, theirs=samples) for name, samples in taken.items()]


async def _texts(setting: Setting, folder: Path) -> Rows:
    lines = setting.text.splitlines()
    at = places()
    sides = {
        "base": lines,
        "one": edited(lines, at[25:26], "one"),
        "many": edited(lines, at, "many"),
        "mine": edited(lines, at[::2], "mine"),
        "theirs": edited(lines, at[1::2], "theirs"),
    }
    paths = {name: str(folder / f"{name}.py") for name in sides}
    for name, side in sides.items():
        Path(paths[name]).write_text("\n".join(side) + "\n", encoding="utf-8")

    def diff(name: str) -> str:
        return unified(Side("base.py", lines), Side("base.py", sides[name])).text

    def merged() -> Sequence[str]:
        result = LineMerge(lines, sides["mine"], sides["theirs"]).merged()
        assert isinstance(result, Merged)
        return result.lines

    imports = [["import one", *sides[name][1:]] for name in ("base", "mine", "theirs")]
    imports[1].insert(1, "import two")
    imports[2].insert(1, "import three")
    for name, side in zip(("o", "a", "b"), imports, strict=True):
        (folder / name).write_text("\n".join(side) + "\n", encoding="utf-8")
    conflicting = ("git", "merge-file", "-p", *(str(folder / name) for name in "aob"))

    def resolved() -> None:
        base, current, proposed = imports
        result = merge_automatically(LineMerge(base, current, proposed), path=WorkspacePath("a.py"))
        assert isinstance(result, AutomaticMerge)
        assert result.beyond is not None

    merge_file = ("git", "merge-file", "-p", paths["mine"], paths["base"], paths["theirs"])
    assert "\n".join(merged()) + "\n" == _program(*merge_file).decode()
    git_diff = ("git", "diff", "--no-index", paths["base"])
    contenders = {
        "one": plain(lambda: diff("one")),
        "one git": plain(lambda: _program(*git_diff, paths["one"])),
        "many": plain(lambda: diff("many")),
        "many git": plain(lambda: _program(*git_diff, paths["many"])),
        "merge": plain(merged),
        "merge git": plain(lambda: _program(*merge_file)),
        "settle": plain(resolved),
        "settle git": plain(lambda: _program(*conflicting)),
    }
    taken = await in_turns(contenders, setting.times(15))
    wanted = (
        ("one", "diff of 1 edit, 20,000 lines", "spawned git diff", 1.0, ""),
        ("many", "diff of 50 edits, 20,000 lines", "spawned git diff", 1 / 3, ""),
        ("settle", "merge with 1 clash settled, 20,000 lines", "git merge-file, which leaves it", 1 / 3, IMPORTS_READ),
        ("merge", "merge 25 + 25 edits, 20,000 lines", "spawned git merge-file", 1 / 2.5, COMPILED),
    )
    return [
        Row(
            work=work,
            ours=taken[key],
            peer=peer,
            theirs=taken[f"{key} git"],
            target=Target(at_least=round(times, 3), why_missed=why),
        )
        for key, work, peer, times, why in wanted
    ]


def _program(*command: str) -> bytes:
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr  # git diff says 1 where there is a difference
    return done.stdout
