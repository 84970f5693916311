"""6,000 generated edits, stale or misquoted: each applies as its maker meant it, conflicts, or is refused.

What is meant is known by construction: lines have identities, and both sides' changes are made on these.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec
import pytest

from orchestrator.core.content import digest_of
from orchestrator.core.decisions.commands import Edit
from orchestrator.core.decisions.decision import Base, ConflictOutcome, Facts, Held
from orchestrator.core.decisions.patches import Patch
from orchestrator.core.errors import NothingToChange, SearchAmbiguous, SearchNotFound
from orchestrator.core.ids import Seq, WorkspacePath
from orchestrator.core.text.forms.recognise import parse
from orchestrator.core.text.locate import Replacement
from tests.core.decisions.fixtures import new_data
from tests.corpus import sections
from tests.corpus.deciding import decided

PATH = WorkspacePath("a.py")
CASES, SEEDS = 400, 5
NAMES = "alpha beta gamma delta load store user group path data value index check raise_ merge".split()


class Line(msgspec.Struct, frozen=True):
    """A line with its identity, at a depth of so many steps."""

    id: int
    depth: int
    text: str


def text_of(lines: list[Line], step: str = "    ") -> str:
    return "".join(f"{step * line.depth}{line.text}\n" if line.text else "\n" for line in lines)


def made(r: Random) -> list[Line]:
    """Functions whose bodies are alike, as such files have them: blocks within, some lines that stand often."""
    lines: list[Line] = []

    def add(depth: int, text: str) -> None:
        lines.append(Line(len(lines), depth, text))

    for n in range(r.randint(2, 5)):
        add(0, f"def {r.choice(NAMES)}_{n}(item, count):")
        for _ in range(r.randint(1, 4)):
            if r.random() < 0.4:
                add(1, f"if {r.choice(NAMES)}(item):")
                for _ in range(r.randint(1, 3)):
                    add(2, statement(r))
            else:
                add(1, statement(r))
        add(1, r.choice(["return count", "return item", f"return {r.choice(NAMES)}(count)"]))
        add(0, "")
    return lines


def statement(r: Random) -> str:
    return r.choice([
        "count += 1",
        "break_()",
        f"{r.choice(NAMES)} = {r.choice(NAMES)}(item, 'a {r.choice(NAMES)}')",
        f"{r.choice(NAMES)}(count, \"{r.choice(NAMES)} - {r.choice(NAMES)}\")",
        f"log('{r.choice(NAMES)}', {r.randint(1, 3)})",
    ])  # fmt: skip


class Change(msgspec.Struct, frozen=True):
    """Another text for a line, a line behind one, or a line taken away."""

    kind: str
    target: int
    text: str = ""

    def done(self, lines: list[Line]) -> list[Line] | None:
        """None where its line is gone."""
        at = next((at for at, line in enumerate(lines) if line.id == self.target), None)
        if at is None:
            return None
        line = lines[at]
        new = {
            "replace": [Line(line.id, line.depth, self.text)],
            "insert": [line, Line(10_000, line.depth, self.text)],
            "remove": [],
        }
        return [*lines[:at], *new[self.kind], *lines[at + 1 :]]


def change_in(r: Random, lines: list[Line], first: int, last: int) -> Change:
    """Of a plain statement between two lines, of which nothing depends."""
    plain = [line.id for line in lines[first:last] if line.text and not line.text.endswith(":")]
    return Change(r.choice(["replace", "insert", "remove"]), r.choice(plain), f"brand_new_{r.randint(0, 2)}(item)")


def applied(command: Edit | Patch, now: str, base: str | None = None) -> str | None:
    """What the file holds then; None for a conflict or a refusal."""
    held = Held(now.encode(), digest_of(now.encode()), 0o644)
    based = Base(Seq(3), digest_of(base.encode())) if base is not None else None
    contents = {digest_of(base.encode()): base.encode()} if base is not None else {}
    try:
        (path,) = command.paths
        outcome = decided(command, {path: Facts(path, held, Seq(9), based, contents)})
    except (SearchNotFound, SearchAmbiguous):
        return None
    except NothingToChange:
        return now
    return None if isinstance(outcome, ConflictOutcome) else new_data(outcome).decode()


def edit(search: str, replace: str, path: WorkspacePath = PATH) -> Edit:
    """One change that may misquote."""
    return Edit(path=path, changes=(Replacement(search, replace, fuzzy=True),))


def span(r: Random, lines: list[Line]) -> tuple[int, int]:
    """Some lines, of which one at least is a plain statement."""
    while True:
        first = r.randrange(len(lines))
        last = min(len(lines), first + r.randint(1, 6))
        if any(line.text and not line.text.endswith(":") for line in lines[first:last]):
            return first, last


CURLED = str.maketrans({"'": "\u2019", '"': "\u201d", "-": "\u2013"})


def misquoted(r: Random, search: str, replace: str) -> tuple[str, str]:
    """Both texts as somebody wrote them who quotes in one wrong way."""
    least = min(len(row) - len(row.lstrip()) for row in search.splitlines() if row)

    def both(spell: object) -> tuple[str, str]:
        assert callable(spell)
        return tuple("".join(f"{spell(row)}\n" for row in text.splitlines()) for text in (search, replace))  # type: ignore[return-value]

    match r.randrange(9):
        case 0:
            return both(lambda row: row[least:])
        case 1:
            return both(lambda row: row.replace("    ", "  "))
        case 2:
            return both(lambda row: row.replace("    ", "\t"))
        case 3:
            return both(lambda row: row.translate(CURLED))
        case 4:
            return both(lambda row: row.replace("'", "\0").replace('"', "'").replace("\0", '"'))
        case 5:
            return both(lambda row: row.rstrip(":") + ";" if row and not row.endswith(":") else row)
        case 6:
            return both(lambda row: f"{row}  ")
        case 7:
            return search.lstrip(" "), replace.lstrip(" ")
        case _:
            return both(lambda row: f"    {row}")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_misquoted_edit_is_right_or_refused(seed: int) -> None:
    r = Random(f"misquoted {seed}")
    reported = Counter[str]()
    while reported.total() < CASES:
        lines = made(r)
        first, last = span(r, lines)
        change = change_in(r, lines, first, last)
        meant = change.done(lines)
        assert meant is not None
        inside = change.done(lines[first:last])
        assert inside is not None
        search, replace = misquoted(r, text_of(lines[first:last]), text_of(inside))
        if f"\n{search}" in f"\n{text_of(lines)}" and search != text_of(lines[first:last]):
            continue  # that quotes another place, to the letter: no case, and another one is made instead
        result = applied(edit(search, replace), text_of(lines))
        wanted = text_of(meant)
        reported["refused" if result is None else "right" if result == wanted else "wrong"] += 1
        assert result is None or _plain(result) == _plain(wanted), (search, replace, text_of(lines), result)
    assert reported["right"] > CASES // 4, reported


def _plain(text: str) -> str:
    """A new line may end as its author writes lines."""
    rows = (row.rstrip() for row in text.splitlines())
    return "\n".join(row.removesuffix(";") if "brand_new" in row else row for row in rows)


def others(r: Random, lines: list[Line]) -> list[Line]:
    """What somebody else did meanwhile: wrapped, removed, moved, changed or added."""
    first, last = span(r, lines)
    match r.randrange(5):
        case 0:
            first = next(at for at in range(first, last) if lines[at].text and not lines[at].text.endswith(":"))
            depth = lines[first].depth
            last = next((at for at in range(first, last) if lines[at].depth != depth or not lines[at].text), last)
            inner = [msgspec.structs.replace(line, depth=depth + 1) for line in lines[first:last]]
            return [*lines[:first], Line(20_000, depth, "if ready(item):"), *inner, *lines[last:]]
        case 1:
            return [*lines[:first], *lines[last:]]
        case 2:
            starts = [at for at, line in enumerate(lines) if line.depth == 0 and line.text]
            one = r.choice(starts)
            end = next((at for at in starts if at > one), len(lines))
            return [*lines[:one], *lines[end:], *lines[one:end]]
        case _:
            done = change_in(r, lines, first, last).done(lines)
            assert done is not None
            return done


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_stale_edit_is_right_or_a_conflict(seed: int) -> None:
    r = Random(f"stale {seed}")
    reported = Counter[str]()
    for _ in range(CASES):
        base = made(r)
        now = others(r, base)
        first, last = span(r, base)
        change = change_in(r, base, first, last)
        inside = change.done(base[first:last])
        assert inside is not None
        meant = {text_of(both) for both in _both(base, now, change)}
        if text_of(change.done(base) or []) == text_of(now):
            meant.add(text_of(now))  # both sides made the same text, as of two equal lines that each took one
        result = applied(edit(text_of(base[first:last]), text_of(inside)), text_of(now), text_of(base))
        reported["kept" if result is None else "right" if result in meant else "wrong"] += 1
        assert result is None or result in meant, (text_of(base), text_of(now), change, result)
    assert reported["right"] > CASES // 4, reported


def _both(base: list[Line], now: list[Line], change: Change) -> list[list[Line]]:
    """The texts in which both changes are; none where the other side changed the very line otherwise."""
    was = next(line for line in base if line.id == change.target)
    there = next((line for line in now if line.id == change.target), None)
    if there is None:
        return [now] if change.kind == "remove" else []
    if there.text != was.text:
        return [now] if change.kind == "replace" and there.text == change.text else []
    both = change.done(now)
    assert both is not None
    found = [both]
    if change.kind == "insert":
        at = next(at for at, line in enumerate(both) if line.id == 10_000 and line.text == change.text)
        around = [line for line in now if line.id == 10_000]
        if around and any(line.text == change.text for line in around):
            found.append(now)  # both added the same line at one place
        found.append([*both[:at], *both[at + 1 : at + 2], both[at], *both[at + 2 :]])
    return found


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_stale_edit_stays_in_its_section(seed: int) -> None:
    """Of files whose sections are alike, and were moved, taken away, copied or named anew meanwhile."""
    r = Random(f"sections {seed}")
    reported = Counter[str]()
    for _ in range(CASES):
        file = sections.made(r)
        base, now = file.lines, sections.others(r, file).lines
        change = sections.change_in(r, file)
        wanted = sections.meant(base, now, change)
        old, new = sections.quoted(r, base, change)
        path = WorkspacePath(file.path)
        command = patch(old, path) if new is None else edit(old, new, path)
        if "+added" in old:  # beside the change: a line behind the first
            wanted = {text.replace("\n", "\nadded\n", 1) for text in wanted}
        result = applied(command, sections.text_of(now), sections.text_of(base))
        reported["kept" if result is None else "right" if result in wanted else "wrong"] += 1
        assert result is None or result in wanted, (sections.text_of(base), sections.text_of(now), old, new, result)
    assert reported["right"] > CASES // 4, reported


def patch(text: str, path: WorkspacePath) -> Patch:
    """The patch of one file; `PATH` stands for it."""
    return Patch.of(path, parse(text.replace("PATH", path), path).files[0], fuzzy=True)
