from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given

from orchestrator.core.content import LineHunk, LineRange
from orchestrator.core.text import diff as diffing
from orchestrator.core.text import myers
from orchestrator.core.text.answer_space import AnswerSpace
from orchestrator.core.text.diff import counts, diff
from orchestrator.core.text.unified_diff import Side, unified
from tests.core.text.strategies import plain_lines, quick
from tests.core.text.strategies_git import ALPHABETS, three, with_hunks


@pytest.mark.parametrize(("a", "b", "hunks"), [
    pytest.param("", "", [], id="both empty"),
    pytest.param("abc", "abc", [], id="equal"),
    pytest.param("", "ab", [LineHunk(0, 0, 0, 2)], id="from nothing"),
    pytest.param("ab", "", [LineHunk(0, 2, 0, 0)], id="to nothing"),
    pytest.param("abc", "axc", [LineHunk(1, 1, 1, 1)], id="replaced"),
    pytest.param("abcde", "xbcdy", [LineHunk(0, 1, 0, 1), LineHunk(4, 1, 4, 1)], id="both ends"),
    pytest.param("aab", "ab", [LineHunk(1, 1, 1, 0)], id="slides down"),
    pytest.param("a}b}c", "a}x}b}c", [LineHunk(2, 0, 2, 2)], id="an inserted block slides down"),
])  # fmt: skip
def test_diff(a: str, b: str, hunks: list[LineHunk]) -> None:
    assert diff(a, b) == hunks


def check(a: list[str], b: list[str]) -> None:
    hunks = diff(a, b)
    assert with_hunks(a, b, hunks) == b
    for one, other in pairwise(hunks):
        assert other.old_start - one.old_end == other.new_start - one.new_end > 0
    assert all(hunk.old_len or hunk.new_len for hunk in hunks)
    added, removed = counts(hunks)
    assert len(a) - removed == len(b) - added


@quick
@given(plain_lines, plain_lines)
def test_diff_then_apply_gives_the_target(a: list[str], b: list[str]) -> None:
    check(a, b)


@pytest.mark.parametrize("seed", range(3))
def test_rewritten_texts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond what Myers is given, rapidfuzz and the anchors must be as right."""
    monkeypatch.setattr(myers, "MAX_COST", 2)
    for most in (diffing.MAX_LINES, 3):
        monkeypatch.setattr(diffing, "MAX_LINES", most)
        r = Random(seed)
        for _ in range(60):
            for alphabet in ALPHABETS.values():
                base, a, b = three(r, alphabet)
                check(a, b)
                check(base, a)


@pytest.mark.parametrize("lines", [
    pytest.param([str(n % 7) for n in range(3_000)], id="few distinct lines"),
    pytest.param([str(n * 7_919 % 3_001) for n in range(3_000)], id="a permutation"),
])  # fmt: skip
def test_worst_cases(lines: list[str]) -> None:
    check(lines, sorted(lines))
    check(lines, lines[::-1])


def git_diff(tmp_path: Path, a: str, b: str) -> str:
    (tmp_path / "old.txt").write_bytes(a.encode())
    (tmp_path / "new.txt").write_bytes(b.encode())
    command = ["git", "diff", "--no-index", "--no-indent-heuristic", "--no-color", "old.txt", "new.txt"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode in {0, 1}
    rows = done.stdout.decode().split("\n")
    shown = [row for row in rows if not row.startswith(("diff ", "index "))]
    return "\n".join(row[: row.index(" @@") + 3] if row.startswith("@@") else row for row in shown)  # no section names


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_unified_is_what_git_writes(alphabet: str, tmp_path: Path) -> None:
    r = Random(alphabet)
    for _ in range(40):
        _, a, b = three(r, ALPHABETS[alphabet])
        ended = [r.random() < 0.8 or not lines or not lines[-1] for lines in (a, b)]
        texts = ["\n".join(side) + "\n" * (bool(side) and end) for side, end in zip((a, b), ended, strict=True)]
        ours = unified(Side("old.txt", a, ended[0]), Side("new.txt", b, ended[1]))
        assert ours.text == git_diff(tmp_path, *texts)


@pytest.mark.parametrize(("before", "after", "heads"), [
    pytest.param(None, "a.py", "--- /dev/null\n+++ b/a.py\n", id="created"),
    pytest.param("a.py", None, "--- a/a.py\n+++ /dev/null\n", id="deleted"),
    pytest.param("my file", "é.py", "--- a/my file\t\n+++ b/é.py\n", id="a blank, a letter"),
    pytest.param('a"b', "a\tb\x1b", '--- "a/a\\"b"\n+++ "b/a\\tb\\033"\n', id="quoted"),
    pytest.param("\udcff", "\u2028", '--- "a/\\377"\n+++ "b/\\342\\200\\250"\n', id="bytes and separators"),
])  # fmt: skip
def test_headers(before: str | None, after: str | None, heads: str) -> None:
    text = unified(Side(before, ["x"]), Side(after, ["y"])).text
    assert text == heads + "@@ -1 +1 @@\n-x\n+y\n"


def test_a_last_newline_is_a_difference() -> None:
    made = unified(Side("a", ["x"]), Side("a", ["x"], final_newline=False))
    text = made.text
    assert (made.added, made.removed, made.shown) == (1, 1, (LineRange(1, 1),))
    assert text.endswith("@@ -1 +1 @@\n-x\n+x\n\\ No newline at end of file\n")
    assert unified(Side("a", ["x"]), Side("a", ["x"])).text == ""


BEFORE = [str(n) for n in range(1, 31)]
AFTER = [*BEFORE[:4], "new", *BEFORE[5:20], "more", *BEFORE[20:]]


@pytest.mark.parametrize(("rows", "shown", "goes_on"), [
    pytest.param(2, (), (2, 2), id="the headers alone"),
    pytest.param(3, (), (2, 2), id="no line of the first hunk"),
    pytest.param(7, (LineRange(2, 4),), (6, 5), id="up to what is added"),
    pytest.param(8, (LineRange(2, 5),), (6, 6), id="with what is added"),
    pytest.param(11, (LineRange(2, 8),), (18, 18), id="the first hunk"),
    pytest.param(19, (LineRange(2, 8), LineRange(18, 24)), None, id="all"),
])  # fmt: skip
def test_as_much_of_a_diff_as_there_is_room_for(
    rows: int, shown: tuple[LineRange, ...], goes_on: tuple[int, int] | None
) -> None:
    whole = unified(Side("a", BEFORE), Side("a", AFTER))
    part = unified(Side("a", BEFORE), Side("a", AFTER), room=AnswerSpace(lines=rows + 1))
    assert part.text == "".join(whole.text.splitlines(keepends=True)[:rows])
    assert (part.shown, part.goes_on) == (shown, goes_on)
    assert (part.added, part.removed) == (2, 1)


def test_of_a_large_diff_no_more_is_made_than_there_is_room_for() -> None:
    class Lines(list[str]):
        read = 0

        def __getitem__(self, at: Any) -> Any:
            self.read += 1
            return super().__getitem__(at)

    lines = Lines(map(str, range(10_000)))
    part = unified(Side("a", lines), Side("a", ["x"]), hunks=(LineHunk(0, 10_000, 0, 1),), room=AnswerSpace(lines=21))
    assert (part.goes_on, part.removed) == ((18, 1), 10_000)
    assert lines.read < 20
