"""Attribution against a naive oracle, against git, and by tables for what reverts give back."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.core.content import LineHunk, digest_of
from orchestrator.core.ids import Digest, Seq
from orchestrator.core.projections.attribution import Attribution, RevertTexts, Step
from orchestrator.core.text.diff import diff
from tests.core.text.strategies_git import ALPHABETS, edited

Text = tuple[str, ...]


def digest(text: Text | None) -> Digest | None:
    return None if text is None else digest_of("\n".join(text).encode())


def hunks_between(old: Text, new: Text) -> tuple[LineHunk, ...]:
    return tuple(diff(old, new))


class File:
    """A file's texts, folded as they come; versions are numbered 1, 2, 3 …"""

    def __init__(self) -> None:
        self.attribution = Attribution()
        self.texts: list[Text] = [()]
        self._hunks: list[tuple[LineHunk, ...]] = [()]

    def put(self, text: str | Text, *, reverts: tuple[int, ...] = ()) -> File:
        """The next version; a revert comes with the texts that it needs."""
        new = tuple(text.split()) if isinstance(text, str) else text
        old, number = self.texts[-1], Seq(len(self.texts))
        hunks = hunks_between(old, new)
        removed = {
            Seq(n): tuple(
                line for h in self._hunks[n] for line in self.texts[n - 1][h.old_start : h.old_start + h.old_len]
            )
            for n in reverts
        }
        inserted = tuple(line for h in hunks for line in new[h.new_start : h.new_start + h.new_len])
        self.attribution.take(
            Step(
                version=number,
                change=number,
                before=digest(old),
                after=digest(new),
                hunks=hunks,
                reverts=tuple(map(Seq, reverts)),
                texts=RevertTexts(inserted, removed) if reverts else None,
            )
        )
        self.texts.append(new)
        self._hunks.append(hunks)
        return self

    @property
    def owners(self) -> list[int]:
        return owners(self.attribution)


def owners(attribution: Attribution) -> list[int]:
    """The owner of each line."""
    return [int(part.version) for part in attribution.owned() for _ in range(part.start, part.end + 1)]


# --- by an oracle ---------------------------------------------------------------------------

spans = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 3)), max_size=4)


@given(st.lists(spans, max_size=12))
def test_lines_outside_of_hunks_keep_their_owner(history: list[list[tuple[int, int, int]]]) -> None:
    """The oracle carries each line's owner with the line itself and knows nothing of ranges."""
    attribution, lines = Attribution(), list[int]()
    for number, edits in enumerate(history, 1):
        hunks: list[LineHunk] = []
        result, at = list[int](), 0
        for skip, most, come in edits:
            result += lines[at : at + skip]
            at = min(at + skip, len(lines))
            gone = min(most, len(lines) - at)
            hunks.append(LineHunk(at, gone, len(result), come))
            result += [number] * come
            at += gone
        result += lines[at:]
        version = Seq(number)
        attribution.take(Step(version=version, change=version, before=None, after=None, hunks=tuple(hunks)))
        lines = result
        assert owners(attribution) == lines
    assert attribution.lines == len(lines)
    middle = len(lines) // 2
    parts = [*attribution.owned(1, middle), *attribution.owned(middle + 1)] if middle else [*attribution.owned()]
    assert [part.start for part in parts[:1]] == [1] * bool(lines)
    assert sum(part.end - part.start + 1 for part in parts) == len(lines)


@given(st.integers(0, 10**6), st.sampled_from(sorted(ALPHABETS)), st.integers(1, 6), st.integers(1, 5))
def test_reverting_the_last_changes_one_by_one_restores_every_owner(
    seed: int, alphabet: str, before: int, after: int
) -> None:
    random, letters = Random(seed), ALPHABETS[alphabet]
    file = File().put(tuple(letters(random) for _ in range(random.randint(0, 30))))
    for _ in range(before):
        file.put(tuple(edited(random, list(file.texts[-1]), letters)))
    was, number = file.owners, len(file.texts)
    for _ in range(after):
        file.put(tuple(edited(random, list(file.texts[-1]), letters)))
    for undone in reversed(range(number, number + after)):
        file.put(file.texts[undone - 1], reverts=(undone,))
    assert file.owners == was


@given(st.integers(0, 10**6), st.integers(1, 5))
def test_reverting_several_at_once_gives_each_line_back(seed: int, many: int) -> None:
    """Of lines that are unlike each other none can be mistaken, so all of them are their first author's again."""
    random, fresh = Random(seed), iter(range(10**6))
    file = File().put(tuple(f"line {next(fresh)}" for _ in range(20)))
    for _ in range(many):
        lines = list(file.texts[-1])
        at, gone = random.randint(0, len(lines)), random.randint(0, 4)
        lines[at : at + gone] = [f"line {next(fresh)}" for _ in range(random.randint(0, 4))]
        file.put(tuple(lines))
    file.put(file.texts[1], reverts=tuple(range(2, 2 + many)))
    assert file.owners == [1] * 20


# --- reverts, one by one ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("history", "undoing", "result", "expected"),
    [
        pytest.param(["a b c", "a x c"], (2,), "a b c", [1, 1, 1], id="a replaced line comes back as it was"),
        pytest.param(["a b c", "a c"], (2,), "a b c", [1, 1, 1], id="a removed line too"),
        pytest.param(["a b c", "a b c d"], (2,), "a b c", [1, 1, 1], id="an added line goes"),
        pytest.param(["a b c", ""], (2,), "a b c", [1, 1, 1], id="an emptied file"),
        pytest.param(["a b c", "a x c", "a x c d"], (2,), "a b c d", [1, 1, 1, 3], id="later work stays its author's"),
        pytest.param(["a b c", "a B c", "z a B c"], (2,), "z a b c", [3, 1, 1, 1], id="moved by later work"),
        pytest.param(["a b", "a x", "a b"], (), "a b d", [1, 3, 4], id="the same text without a revert is new"),
        pytest.param(["a b", "a x", "a y"], (2,), "a b", [1, 1], id="a revert under later work of the same line"),
        pytest.param(["a b c d", "a d"], (2,), "a b q d", [1, 1, 3, 1], id="what a person adds to a revert is its own"),
        pytest.param(["a b", "a x", "a y"], (2, 3), "a b", [1, 1], id="two at once"),
        pytest.param(["a b", "a x", "a y"], (3,), "a x", [1, 2], id="the later of two"),
        pytest.param(["a b", "a x", "a b", "a z"], (2, 3, 4), "a b", [1, 1], id="through a line typed anew"),
        pytest.param(["a b", "a x", "a b", "a z"], (4,), "a b", [1, 3], id="only the last: the one who typed it anew"),
    ],
)  # fmt: skip
def test_what_a_revert_gives_back(
    history: list[str], undoing: tuple[int, ...], result: str, expected: list[int]
) -> None:
    file = File()
    for text in history:
        file.put(text)
    assert file.put(result, reverts=undoing).owners == expected


def test_a_revert_of_a_revert_gives_back_the_first_change() -> None:
    file = File().put("a b c").put("a x c").put("a b c", reverts=(2,)).put("a x c", reverts=(3,))
    assert file.owners == [1, 2, 1]


def test_a_revert_without_texts_gives_back_only_what_is_certain() -> None:
    """The exact inverse needs no content; another revert whose contents are gone owns what it inserts."""
    for after, expected in ((digest(("a", "b")), [1, 1]), (digest(("a", "b", "")), [1, 3])):
        attribution = Attribution()
        steps = (
            (LineHunk(0, 0, 0, 2), None, digest(("a", "b"))),
            (LineHunk(1, 1, 1, 1), digest(("a", "b")), digest(("a", "x"))),
        )
        for number, (hunk, old, new) in enumerate(steps, 1):
            version = Seq(number)
            attribution.take(Step(version=version, change=version, before=old, after=new, hunks=(hunk,)))
        back = Step(
            version=Seq(3),
            change=Seq(3),
            before=digest(("a", "x")),
            after=after,
            hunks=(LineHunk(1, 1, 1, 1),),
            reverts=(Seq(2),),
        )
        assert bool(attribution.inexact(back)) == (expected == [1, 3])
        attribution.take(back)
        assert owners(attribution) == expected


# --- the rest -----------------------------------------------------------------------------------


def test_lines_from_an_unknown_content_say_so() -> None:
    attribution = Attribution()
    step = Step(version=Seq(9), change=Seq(8), before=None, after=None, hunks=(LineHunk(1, 0, 1, 1),), since=Seq(5))
    attribution.refill(step, 3)
    assert [(part.start, part.end, part.version, part.certain) for part in attribution.owned()] == [
        (1, 1, 5, False),
        (2, 2, 9, True),
        (3, 3, 5, False),
    ]


def test_hunks_that_do_not_fit_are_refused() -> None:
    attribution = File().put("a b").attribution
    with pytest.raises(ValueError, match="@7"):
        attribution.take(Step(version=Seq(7), change=Seq(7), before=None, after=None, hunks=(LineHunk(1, 5, 1, 0),)))
    assert owners(attribution) == [1, 1]


# --- git ------------------------------------------------------------------------------------------


class Repository:
    """A git repository with one file, and who git says wrote its lines."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._git("init", "-q")

    def commit(self, text: Text) -> str:
        (self._folder / "f").write_text("".join(f"{line}\n" for line in text))
        self._git("add", "f")
        self._git("commit", "-q", "--allow-empty", "-m", "x")
        return self._git("rev-parse", "HEAD").strip()

    def blame(self) -> list[str]:
        said = self._git("blame", "-s", "--no-abbrev", "--root", "f")
        return [line.split()[0] for line in said.splitlines()]

    def _git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "diff.indentHeuristic=false")
        command = ("git", *identity, "-c", "commit.gpgsign=false", *arguments)
        return subprocess.run(command, cwd=self._folder, check=True, capture_output=True, text=True).stdout


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10**6), alphabet=st.sampled_from(sorted(ALPHABETS)), versions=st.integers(1, 8))
def test_linear_histories_are_blamed_as_git_does(
    tmp_path_factory: pytest.TempPathFactory, seed: int, alphabet: str, versions: int
) -> None:
    random, letters = Random(seed), ALPHABETS[alphabet]
    repository, file, commits = Repository(tmp_path_factory.mktemp("git")), File(), list[str]()
    text: list[str] = [letters(random) for _ in range(random.randint(1, 40))]
    for _ in range(versions):
        commits.append(repository.commit(tuple(text)))
        file.put(tuple(text))
        text = edited(random, text, letters)
    assert [commits[owner - 1] for owner in file.owners] == repository.blame()
