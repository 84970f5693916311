"""Attribution against a naive oracle and against git."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.core.content import LineHunk
from orchestrator.core.ids import Seq
from orchestrator.core.projections.attribution import Attribution, Step
from orchestrator.core.text.diff import diff
from tests.core.text.strategies_git import ALPHABETS, edited

Text = tuple[str, ...]


class File:
    """A file's texts, folded as they come; versions are numbered 1, 2, 3 …"""

    def __init__(self) -> None:
        self.attribution = Attribution()
        self.texts: list[Text] = [()]

    def put(self, text: str | Text) -> File:
        """The next version."""
        new = tuple(text.split()) if isinstance(text, str) else text
        self.attribution.take(Step(Seq(len(self.texts)), tuple(diff(self.texts[-1], new))))
        self.texts.append(new)
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
        attribution.take(Step(Seq(number), tuple(hunks)))
        lines = result
        assert owners(attribution) == lines
    assert attribution.lines == len(lines)
    middle = len(lines) // 2
    parts = [*attribution.owned(1, middle), *attribution.owned(middle + 1)] if middle else [*attribution.owned()]
    assert [part.start for part in parts[:1]] == [1] * bool(lines)
    assert sum(part.end - part.start + 1 for part in parts) == len(lines)


# --- the rest -----------------------------------------------------------------------------------


def test_lines_from_an_unknown_content_say_so() -> None:
    attribution = Attribution()
    step = Step(Seq(9), (LineHunk(1, 0, 1, 1),), since=Seq(5))
    attribution.refill(step, 3)
    assert [(part.start, part.end, part.version, part.certain) for part in attribution.owned()] == [
        (1, 1, 5, False),
        (2, 2, 9, True),
        (3, 3, 5, False),
    ]


def test_hunks_that_do_not_fit_are_refused() -> None:
    attribution = File().put("a b").attribution
    with pytest.raises(ValueError, match="@7"):
        attribution.take(Step(Seq(7), (LineHunk(1, 5, 1, 0),)))
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
