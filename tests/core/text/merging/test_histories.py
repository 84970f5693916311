"""Merges that real histories pose, beside `git merge-file`: byte for byte its own, clean or not.

What we hold back although git is clean (`doubts`) is counted, and so is what the rules settle where git is not,
and where the regions of a conflict are not git's.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.merge import LineMerge
from orchestrator.core.text.merging.automatic_merge import AutomaticMerge, merge_automatically
from tests.core.text.merging.random_histories import Case, from_git, from_installed, sample

ROOT = Path(__file__).parents[4]
FIRST_COMMITS = 370
"""Of this repository: a history that later commits do not change."""
MOST_HELD_BACK = 0.01
"""Of the merges that git finds clean."""

MOST_OTHERWISE = 0.02
"""Of the merges that git finds not clean: rewritten texts, whose lines git guesses to pair in another way than we."""


def own_cases() -> list[Case]:
    """What this project's own history poses."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git repository, so it has no history to draw from")
    return from_git(ROOT, FIRST_COMMITS)


def git_merge(folder: Path, case: Case) -> tuple[bool, str]:
    """Whether git finds a merge clean, and what it makes of it; with its conflicts marked as diff3 does."""
    for name, text in zip("oab", (case.base, case.current, case.proposed), strict=True):
        (folder / name).write_bytes(text.encode())
    done = subprocess.run(
        ["git", "merge-file", "-p", "-q", "--diff3", "a", "o", "b"], cwd=folder, capture_output=True, check=False
    )
    assert done.returncode < 128, done.stderr
    return done.returncode == 0, done.stdout.decode()


def marked(case: Case) -> str:
    """The plain merge of three texts, marked as git does it."""
    base, current, proposed = case.sides
    lines: list[str] = []
    at = 0
    for cluster in LineMerge(base, current, proposed).clusters:
        r = cluster.region
        lines += base[at : r.base.start]
        at = r.base.start + r.base.length
        if cluster.agreed is None:
            lines += ["<<<<<<< a", *current[r.current.start :][: r.current.length]]
            lines += ["||||||| o", *base[r.base.start : at]]
            lines += ["=======", *proposed[r.proposed.start :][: r.proposed.length], ">>>>>>> b"]
        else:
            lines += cluster.agreed
    return "".join(f"{line}\n" for line in [*lines, *base[at:]])


def compared(cases: Iterable[Case], folder: Path) -> Counter[str]:
    """How the merges come out; raises where one differs from git's."""
    seen: Counter[str] = Counter()
    for case in cases:
        clean, merged = git_merge(folder, case)
        alike = marked(case) == merged
        assert alike or not clean, case.path
        seen["other regions"] += not alike
        result = merge_automatically(LineMerge(*case.sides), path=WorkspacePath(case.path))
        if clean:
            assert isinstance(result, AutomaticMerge) or result.why, case.path
            assert not isinstance(result, AutomaticMerge) or "".join(f"{line}\n" for line in result.lines) == merged
            seen["clean" if isinstance(result, AutomaticMerge) else "held back"] += 1
        elif isinstance(result, AutomaticMerge):
            assert result.beyond is not None
            text = "".join(f"{line}\n" for line in result.lines)
            known = case.committed is not None
            seen[
                "settled as people did" if text == case.committed else "settled otherwise" if known else "resolved"
            ] += 1
        else:
            seen["conflict"] += 1
    return seen


def check(seen: Counter[str], count: int) -> None:
    print(dict(seen))
    assert seen.total() - seen["other regions"] == count
    assert seen["other regions"] <= MOST_OTHERWISE * seen["conflict"]
    assert seen["held back"] <= MOST_HELD_BACK * seen["clean"] + 1
    assert seen["settled otherwise"] <= max(1, seen["settled as people did"])


def test_merges_of_this_history_are_gits(tmp_path: Path) -> None:
    cases = own_cases()
    merges = [case for case in cases if case.kind == "merge"]
    chosen = [*sample(merges, 40, "merges"), *sample(cases, 110, "this history")]
    check(compared(chosen, tmp_path), 150)


@pytest.mark.soak
def test_a_thousand_clean_merges_are_gits(tmp_path: Path) -> None:
    """Of this project's history, rewritten into branches; and what releases pose that are installed side by side."""
    chosen = sample(own_cases(), 2_400, "this history")
    seen = compared(chosen, tmp_path)
    check(seen, len(chosen))
    assert seen["clean"] >= 1_000
    for name, cases in from_installed().items():
        chosen = sample(cases, 400, name)
        print(name, end=": ")
        check(compared(chosen, tmp_path), len(chosen))
