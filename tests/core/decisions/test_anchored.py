"""Passages of the base that others moved or indented: where the change goes then, and where it is not risked."""

from __future__ import annotations

import msgspec
import pytest

from orchestrator.core.content import digest_of
from orchestrator.core.decisions import rebase
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts, Need, Outcome
from orchestrator.core.errors import NothingToChange
from orchestrator.core.text.locate import Replacement
from orchestrator.core.text.symbols import Outline, Symbol
from tests.core.decisions.fixtures import facts, new_data

BASE = "def one():\n    go()\n    return 1\n\n\ndef two():\n    go()\n    stop()\n    return 2\n"


def outlined(text: str) -> Outline:
    """By `def` alone, nesting by indentation; enough for these texts."""
    lines = text.split("\n")
    heads = [at for at, line in enumerate(lines) if line.lstrip().startswith(("def ", "class "))]

    def depth(at: int) -> int:
        return len(lines[at]) - len(lines[at].lstrip())

    def until(head: int) -> int:
        below = (at for at in range(head + 1, len(lines)) if lines[at].strip() and depth(at) <= depth(head))
        end = next(below, len(lines))
        while not lines[end - 1].strip():
            end -= 1
        return end

    def made(among: list[int]) -> tuple[Symbol, ...]:
        symbols: list[Symbol] = []
        while among:
            head, end = among[0], until(among[0])
            kind, name = lines[head].split("(")[0].rstrip(":").split()
            inner = [at for at in among[1:] if at < end]
            symbols.append(Symbol(name, kind, head + 1, end, made(inner)))
            among = [at for at in among if at >= end]
        return tuple(symbols)

    return Outline("python", made(heads))


def decided(change: Replacement, here: Facts, *, outlines: bool = True) -> Outcome:
    """The decision, with the outlines that it asks for, once."""
    outcome = rebase.edit([change], here)
    if not isinstance(outcome, Need):
        return outcome
    assert outcome.outlines
    found = {source.digest: outlined(source.data.decode()) if outlines else None for source in outcome.outlines}
    return rebase.edit([change], msgspec.structs.replace(here, outlines=found))


STOP = Replacement("    go()\n    stop()\n", "    go()\n    stop(now)\n")


@pytest.mark.parametrize(("now", "after"), [
    pytest.param(
        BASE.replace("    go()\n    stop()\n", "    if ready:\n        go()\n        stop()\n"),
        BASE.replace("    go()\n    stop()\n", "    if ready:\n        go()\n        stop(now)\n"),
        id="indented where it stands",
    ),
    pytest.param(
        BASE.replace("    ", "\t"), BASE.replace("    ", "\t").replace("stop()", "stop(now)"), id="tabs for blanks"
    ),
])  # fmt: skip
def test_it_is_found_again(now: str, after: str) -> None:
    outcome = decided(STOP, facts(now, base=BASE))
    assert isinstance(outcome, Apply), outcome
    assert new_data(outcome).decode() == after
    assert (outcome.fit.rung, outcome.fit.score) == ("anchored", 1.0)
    assert outcome.paths[0].after == digest_of(after.encode())


def test_it_is_found_where_its_symbol_was_moved_to() -> None:
    long = "def long():\n" + "".join(f"    step({n})\n" for n in range(9)) + "\n\n"
    two = "def two():\n    go()\n    stop()\n    return 2\n\n\n"
    outcome = decided(STOP, facts(two + long, base=long + two))
    assert isinstance(outcome, Apply)
    assert outcome.fit.rung == "anchored"
    assert new_data(outcome).decode() == two.replace("stop()", "stop(now)") + long
    assert isinstance(decided(STOP, facts(two + long, base=long + two), outlines=False), ConflictOutcome), (
        "nothing says so"
    )


def test_one_of_several_equal_places_by_its_symbol() -> None:
    base = "def six():\n    return 6\n\n\n" + BASE.partition("\n\n\n")[2]
    now = "def six():\n    go()\n    stop()\n    return 6\n\n\ndef two():\n    if on:\n"
    now += "        go()\n        stop()\n    return 2\n"
    outcome = decided(STOP, facts(now, base=base))
    assert isinstance(outcome, Apply)
    assert outcome.fit.rung == "anchored"
    assert new_data(outcome).decode() == now.replace("        stop()", "        stop(now)")


@pytest.mark.parametrize("outlines", [True, False], ids=["outlined", "no outline"])
def test_an_equal_line_elsewhere_is_not_taken_for_the_same(outlines: bool) -> None:
    """Somebody changed the line, and wrote one like the old somewhere else in the same function."""
    base = "def f():\n    a()\n    b()\n    x = 1\n    c()\n    d()\n    e()\n"
    now = "def f():\n    a()\n    b()\n    x = 2\n    c()\n    d()\n    x = 1\n    e()\n    g()\n"
    outcome = decided(Replacement("x = 1", "x = 3"), facts(now, base=base), outlines=outlines)
    assert isinstance(outcome, ConflictOutcome)


def test_what_somebody_changed_is_no_misquotation() -> None:
    here = facts(BASE.replace("stop()", "stop(1)"), base=BASE)
    leave = msgspec.structs.replace(STOP, fuzzy=True)
    assert isinstance(decided(leave, here), ConflictOutcome)


def test_a_misquoted_passage_of_the_base_is_carried_on() -> None:
    now = "import os\n\n\n" + BASE
    change = Replacement("    go();\n    stop()\n", "    go();\n    stop(1)\n", fuzzy=True)
    outcome = decided(change, facts(now, base=BASE))
    assert isinstance(outcome, Apply)
    assert (outcome.fit.rung, outcome.fit.score < 1) == ("fuzzy", True)
    assert new_data(outcome).decode() == now.replace("stop()", "stop(1)")


def rows(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


PLAIN = rows("    d = h(p)", "    return d")
WRAPPED = rows("    if os.path.exists(p):", "        d = h(p)", "        return d")
LOCKED = rows("    with lock:", "        d = h(p)", "        return d")
FOUR = rows("def f():", "    a()", "    b()", "    c()", "    d()")
DEEPER = rows("def f():", "    if x:", "        a()", "        b()", "        c()", "    d()")
LOOPS = rows(
    "def f(a, b):", "    for x in a:", "        if x:", "            break", "    for y in b:", "        stop(y)"
)
ITEM = rows("  - name: a", "    run: make")


@pytest.mark.parametrize(("base", "now", "search", "replace", "after"), [
    pytest.param(PLAIN, WRAPPED, PLAIN, WRAPPED, "nothing", id="the same wrap twice"),
    pytest.param(PLAIN, LOCKED, PLAIN, LOCKED.replace("n d", "n d or e"), None, id="another wrap in the wrap"),
    pytest.param(PLAIN, LOCKED, PLAIN, LOCKED.replace("lock:", "lock, log:"), None, id="the wrap in other words"),
    pytest.param(
        FOUR, DEEPER.replace("        c()\n", "        log()\n        c()\n"),
        "    a()\n    b()\n", "    a()\n    b()\n    log()\n", None, id="the new line stands there already",
    ),
    pytest.param(
        LOOPS, rows("def f(a, b):", "    for y in b:", "        if y:", "            break"),
        "            break\n", "            return x\n", None, id="the break of another loop",
    ),
    pytest.param(
        f"steps:\n{ITEM}{ITEM}end: 1\n", f"steps:\n{ITEM}end: 1\n",
        f"steps:\n{ITEM}", f"steps:\n{ITEM}".replace("make", "ninja"), None, id="a list item that is gone",
    ),
    pytest.param(
        FOUR, DEEPER, "    a()\n    b()\n    c()\n", "    a()\n    b(1)\n    c()\n", DEEPER.replace("b()", "b(1)"),
        id="in the wrap of another",
    ),
    pytest.param(
        FOUR, DEEPER.replace("a()", "a(1)"), "    b()\n    c()\n", "    b(2)\n    c()\n", None,
        id="beside a line that was changed and indented",
    ),
])  # fmt: skip
def test_what_is_there_already_or_is_not_sure_is_not_done_again(
    base: str, now: str, search: str, replace: str, after: str | None
) -> None:
    """The base's own surroundings must hold where a change goes."""
    here = facts(now, base=base)
    if after == "nothing":
        with pytest.raises(NothingToChange):
            decided(Replacement(search, replace), here)
        return
    outcome = decided(Replacement(search, replace), here)
    if after is None:
        assert isinstance(outcome, ConflictOutcome), outcome
    else:
        assert isinstance(outcome, Apply), outcome
        assert new_data(outcome).decode() == after
