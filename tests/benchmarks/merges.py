"""Large merges and differences beside git's, and merges that this project's history poses."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from random import Random

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.diff import diff
from orchestrator.core.text.merge import LineMerge, Merged
from orchestrator.core.text.merging.automatic_merge import AutomaticMerge, merge_automatically
from tests.benchmarks.fixtures import python_text
from tests.benchmarks.limits import COMPILED
from tests.benchmarks.measuring import Row, Samples, Target, Work, in_turns, plain
from tests.benchmarks.setting import Rows, Setting
from tests.core.text.merging.random_histories import Case, from_git, sample

LINES = 52_000
EQUAL_LINES = 32_768
REPEATED = ["aaaaaaa", "bbbbbbb", "ccccccc"]
REPEATED_LINES = 5 * 1024 * 1024 // 8
ROOT = Path(__file__).parents[2]
PATH = WorkspacePath("a.py")


async def rows(setting: Setting) -> Rows:
    """Ours is `merge_automatically`, with its rules; git's is a spawned program."""
    folder = setting.peers_work / "merges"
    folder.mkdir()
    return [*await _large(setting, folder), *_real(setting, folder)]


async def _large(setting: Setting, folder: Path) -> Rows:
    r = Random(52)
    lines = python_text(LINES).splitlines()
    equal = ["x"] * EQUAL_LINES
    texts = {
        "large": (lines, _edited(r, lines, 0), _edited(r, lines, 1)),
        "equal": (equal, r.choices("xy", k=EQUAL_LINES), r.choices("xz", k=EQUAL_LINES)),
    }
    contenders: dict[str, Work] = {}

    def merge(sides: Iterable[list[str]]) -> object:
        return merge_automatically(LineMerge(*sides), path=PATH)

    for name, sides in texts.items():
        command = _merge_file(folder / name, *("".join(f"{line}\n" for line in side) for side in sides))
        contenders[name] = plain(partial(merge, sides))
        contenders[f"{name} git"] = plain(partial(_program, *command))
    merged = LineMerge(*texts["large"]).merged()
    assert isinstance(merged, Merged)
    assert "".join(f"{line}\n" for line in merged.lines).encode() == _program(*_merge_file(folder / "large")).stdout
    one, other = (r.choices(REPEATED, k=REPEATED_LINES) for _ in range(2))
    contenders["repeated"] = plain(partial(diff, one, other))
    taken = await in_turns(contenders, setting.times(5), warm_up=1)
    wanted = (
        ("large", f"merge {LINES:,} lines, edited at 1,000 places", Target(at_least=0.2, why_missed=COMPILED)),
        ("equal", f"merge two rewrites of {EQUAL_LINES:,} equal lines", Target(at_most_ms=2_000)),
    )
    return [
        *(
            Row(work=work, ours=taken[key], peer="spawned git merge-file", theirs=taken[f"{key} git"], target=target)
            for key, work, target in wanted
        ),
        Row(work="diff of 5 MB of 3 lines repeated", ours=taken["repeated"], target=Target(at_most_ms=2_000)),
    ]


def _edited(r: Random, lines: Sequence[str], own: int) -> list[str]:
    """The lines with every other hundred changed in the middle, by lines that stand elsewhere in them."""
    result: list[str] = []
    for at in range(0, len(lines), 50):
        piece = list(lines[at : at + 50])
        if at // 50 % 2 == own and len(piece) == 50:
            place = r.randrange(15, 30)
            piece[place : place + r.randrange(3)] = r.choices(lines, k=r.randrange(4))
        result += piece
    return result


def _real(setting: Setting, folder: Path) -> Rows:
    """A thousand merges, each by us and by git: what is clean in git must come out as there, or be held back."""
    if not (ROOT / ".git").exists():
        return [Row(work="1,000 real merges", ours=Samples([], "no history here"), peer="git merge-file")]
    ours, theirs = Samples([]), Samples([])
    seen: Counter[str] = Counter()
    for case in sample(from_git(ROOT, 370), setting.times(1_000), "bench"):
        seen[_compared(case, folder / "real", ours, theirs)] += 1
    reported = ", ".join(f"{count} {kind}" for kind, count in sorted(seen.items()))
    assert not seen["otherwise"], reported
    return [Row(work=f"real merges: {reported}", ours=ours, peer="spawned git merge-file", theirs=theirs)]


def _compared(case: Case, folder: Path, ours: Samples, theirs: Samples) -> str:
    """How one merge comes out; both contenders' times in milliseconds."""
    command = _merge_file(folder, case.base, case.current, case.proposed)
    base, current, proposed = case.sides
    start = time.perf_counter()
    result = merge_automatically(LineMerge(base, current, proposed), path=WorkspacePath(case.path))
    between = time.perf_counter()
    done = _program(*command)
    ours.values.append((between - start) * 1e3)
    theirs.values.append((time.perf_counter() - between) * 1e3)
    resolved = isinstance(result, AutomaticMerge)
    if done.returncode:
        return "merged by rule" if resolved else "conflicts"
    if not isinstance(result, AutomaticMerge):
        return "held back" if result.why else "otherwise"
    return "as git" if "".join(f"{line}\n" for line in result.lines).encode() == done.stdout else "otherwise"


def _merge_file(folder: Path, *sides: str) -> tuple[str, ...]:
    """git's merge of base, current and proposed in a folder; of those that stand there, if none are given."""
    folder.mkdir(exist_ok=True)
    for name, text in zip("oab", sides, strict=False):
        (folder / name).write_bytes(text.encode())
    return ("git", "merge-file", "-p", "-q", *(str(folder / name) for name in "aob"))


def _program(*command: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, capture_output=True, check=False)
