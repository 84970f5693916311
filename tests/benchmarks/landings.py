"""Misquoted passages of a 20,000-line file, in the core alone: what landing costs, and what refusing does."""

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
    """Ordinary passages by their median; a refusal beside a landing; and the worst of the files made to be bad."""
    document = new_document(setting.text)
    passage = document.lines[AT : AT + LENGTH]
    landing = {name: plain(looked_for(document, text)) for name, text in quoted(passage).items()}
    refused = plain(looked_for(document, absent(passage)))
    taken = await in_turns({**landing, "refused": refused}, setting.times(10))
    landings = Samples([value for name in landing for value in taken[name].values])
    work = f"a misquoted passage of {LENGTH} lines lands, 20,000 lines"
    slowest = Samples([worst()])
    return [
        Row(work=work, ours=landings, target=Target(at_most_ms=50)),
        Row(
            work="one refused",
            ours=taken["refused"],
            peer="one that lands",
            theirs=taken["a line left out"],
            target=Target(1.0),
        ),
        Row(work="the slowest in files of lines all alike, or wide", ours=slowest, target=Target(at_most_ms=1000)),
    ]


def quoted(lines: tuple[str, ...]) -> dict[str, str]:
    """The ways in which a passage is misquoted."""
    longest = max(range(len(lines)), key=lambda at: len(lines[at]))
    text = "\n".join(lines) + "\n"
    return {
        "blanks": "".join(f"\t{line.strip()}\n" for line in lines),
        "curled quotes, and a semicolon more": text.replace(lines[longest], f"{lines[longest]} ;").translate(CURLED),
        "a line left out": "".join(f"{line}\n" for line in (*lines[:2], *lines[3:])),
        "a blank line more": "".join(f"{line}\n" for line in (*lines[:2], "", *lines[2:])),
    }


def absent(lines: tuple[str, ...]) -> str:
    """A passage as long as the others that stands nowhere."""
    return "".join(f"{line[::-1].strip()} zq\n" for line in lines)


def looked_for(document: Document, search: str) -> Callable[[], object]:
    """The search, landing or not."""
    change = Replacement(search, "one line\n" + search, fuzzy=True)

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
