"""Misquoted passages of a 20,000-line file, in the core alone: what a match costs, and what a refusal does."""

from __future__ import annotations

import time
from collections.abc import Callable

from orchestrator.core.errors import CallerError
from orchestrator.core.text.encoding import Document, new_document
from orchestrator.core.text.locate import Replacement, locate_changes
from tests.benchmarks.measuring import Row, Samples, Target, in_turns, plain
from tests.benchmarks.setting import Rows, Setting

AT, LENGTH = 12_000, 12
CURLED = str.maketrans({"'": "\u2019", '"': "\u201d"})


async def rows(setting: Setting) -> Rows:
    """Ordinary passages by their median; a refusal beside a match; and the worst of the files made to be bad."""
    document = new_document(setting.text)
    passage = document.lines[AT : AT + LENGTH]
    matching = {name: looked_for(document, text) for name, text in misquoted(passage).items()}
    refused = {name: looked_for(document, text) for name, text in in_other_lines(passage).items()}
    for name, search in (matching | refused).items():
        if isinstance(search(), CallerError) == (name in matching):
            raise AssertionError(f"{name!r} is {'refused' if name in matching else 'found'}")
    taken = await in_turns({name: plain(search) for name, search in (matching | refused).items()}, setting.times(10))
    found, not_found = (
        Samples([value for name in names for value in taken[name].values]) for names in (matching, refused)
    )
    work = f"a misquoted passage of {LENGTH} lines is found, 20,000 lines"
    slowest = Samples([worst()])
    return [
        Row(work=work, ours=found, target=Target(at_most_ms=50)),
        Row(work="one refused", ours=not_found, peer="one that is found", theirs=found, target=Target(1.0)),
        Row(work="the slowest in files of lines all alike, or wide", ours=slowest, target=Target(at_most_ms=1000)),
    ]


def misquoted(lines: tuple[str, ...]) -> dict[str, str]:
    """The ways in which a passage may be misquoted and is found."""
    text = "\n".join(lines) + "\n"
    return {
        "tabs for blanks": text.replace("    ", "\t"),
        "one level of indentation less": "".join(f"{line.removeprefix('    ')}\n" for line in lines),
        "blanks at the ends of lines": "".join(f"{line}  \n" for line in lines),
        "typographic quotes": text.translate(CURLED),
    }


def in_other_lines(lines: tuple[str, ...]) -> dict[str, str]:
    """Passages that are refused: with a line less or more, and one as long that stands nowhere."""
    return {
        "a line left out": "".join(f"{line}\n" for line in (*lines[:2], *lines[3:])),
        "a blank line more": "".join(f"{line}\n" for line in (*lines[:2], "", *lines[2:])),
        "absent": "".join(f"{line[::-1].strip()} zq\n" for line in lines),
    }


def looked_for(document: Document, search: str) -> Callable[[], object]:
    """The search, found or refused; what it is for repeats the first line, as indented as all of them."""
    change = Replacement(search, search.partition("\n")[0] + "\n" + search, fuzzy=True)

    def work() -> object:
        try:
            return locate_changes(document, [change], lenient=True)
        except CallerError as refused:
            return refused

    return work


def worst() -> float:
    """Milliseconds of the slowest search in files whose lines are all alike, or nearly."""
    files = {
        "x  = 1": "x = 1\n" * 20_000,
        "valeu = 1": "value = 1\n" * 20_000,
        "vaule_9 = 9": "".join(f"value_{n} = {n}\n" for n in range(20_000)),
        "}\n;": "}\n\n" * 10_000,
        "wide" * 100: "".join(f"{n:05}wdie" * 45 + "\n" for n in range(20_000)),
    }
    slowest = 0.0
    for search, text in files.items():
        document = new_document(text)
        for length in (1, 3, 50, 300, 2_000):
            start = time.perf_counter()
            looked_for(document, f"{search}\n" * length)()
            slowest = max(slowest, (time.perf_counter() - start) * 1e3)
    return slowest
