"""Every change of `bases`, written in every form and spoiled in every way that models spoil patches."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from tests.corpus.bases import Change, changes
from tests.corpus.case import AMBIGUOUS, INVALID, NOT_FOUND, TWO_WAYS, Case
from tests.corpus.writing import Hunk, begin_patch, blocks, heading_of, hunks_of, marked, occurrences, unified

Write = Callable[[Change], str | None]
"""The patch; None where the habit makes no difference for this change."""


class Habit(msgspec.Struct, frozen=True, kw_only=True):
    """A way to write patches. `unique`: it must land where its passages stand once, else it may be refused.

    `good`: it must land. `bad`: it must be refused so. Neither: refused so, or landed as meant.
    """

    name: str
    write: Write
    good: bool = False
    unique: bool = False
    bad: bool = False
    codes: frozenset[str] = frozenset({NOT_FOUND, AMBIGUOUS})
    named: bool = False  # the call names the file
    form: str = "unified"
    context: int = 3
    newline_marked: bool = True  # it can say whether the file ends with a newline
    counts: Callable[[Hunk], tuple[int, int]] | None = None  # what its headers count, if too much; see `seems_cut`


def seems_cut(habit: Habit, hunks: Sequence[Hunk]) -> bool:
    """Whether the last hunk is counted longer than it is and ends with a changed line: the rest may be cut off."""
    last = hunks[-1]
    if habit.counts is None or last.rows[-1][0] == " ":
        return False
    old, new = habit.counts(last)
    return old > len(last.old) or new > len(last.new)


def text(rows: Sequence[str]) -> str:
    return "".join(f"{row}\n" for row in rows)


def head(change: Change) -> list[str]:
    return [f"--- a/{change.path}", f"+++ b/{change.path}"]


def each(change: Change, header: Callable[[Hunk], str], rows: Callable[[Hunk], Sequence[str]] | None = None) -> str:
    """A unified diff with other headers, and other rows."""
    out = head(change)
    for hunk in hunks_of(change):
        out += [header(hunk), *(rows(hunk) if rows is not None else marked(change, hunk))]
    return text(out)


def respelt(change: Change, respell: Callable[[str], str], signs: str = " -") -> str | None:
    """A unified diff in which lines of some signs are quoted otherwise; None if none is."""
    reported = each(
        change, Hunk.header, lambda hunk: [r[0] + respell(r[1:]) if r[0] in signs else r for r in hunk.rows]
    )
    return reported if reported != each(change, Hunk.header, lambda hunk: hunk.rows) else None


def misquoted(change: Change) -> str | None:
    """One word of the first line of context is another."""
    done = False

    def respell(row: str) -> str:
        nonlocal done
        words = re.findall(r"[A-Za-z]{4,}", row)
        if done or not words:
            return row
        done = True
        return row.replace(words[-1], words[-1] + "ing", 1)

    return respelt(change, respell, " ")


def elided(change: Change) -> str | None:
    """The middle of the context is replaced by dots."""
    out = head(change)
    done = False
    for hunk in hunks_of(change):
        rows = list(hunk.rows)
        if rows[0][0] == " " and rows[1][0] == " ":
            rows[0:2] = [" ..."]
            done = True
        out += [hunk.header(), *rows]
    return text(out) if done else None


def numbered(change: Change) -> str:
    """With the numbers of a read before every line that the file has."""
    out = head(change)
    for hunk in hunks_of(change):
        at = hunk.old_start
        out.append("@@ @@")
        for row in hunk.rows:
            if row[0] == "+":
                out.append(row)
            else:
                out.append(f"{row[0]}{at:6d}\t{row[1:]}")
                at += 1
    return text(out)


def stacked(change: Change) -> str | None:
    hunks = [(hunk, heading_of(change, hunk)) for hunk in hunks_of(change)]
    if not all(heading for _, heading in hunks):
        return None
    return text([*head(change), *(row for hunk, heading in hunks for row in (f"@@ {heading}", *marked(change, hunk)))])


def in_turn(change: Change) -> str | None:
    hunks = hunks_of(change)
    if len(hunks) < 2:
        return None
    return text([row for hunk in hunks for row in (*head(change), hunk.header(), *marked(change, hunk))])


def backwards(change: Change) -> str | None:
    hunks = hunks_of(change)
    if len(hunks) < 2:
        return None
    return text([*head(change), *(row for hunk in reversed(hunks) for row in (hunk.header(), *marked(change, hunk)))])


def stripped(row: str) -> str:
    return row if row.strip() else row.strip()


def no_gutter(change: Change) -> str | None:
    """Context without its leading blank; a Markdown list would read as removed lines then."""
    if any(row[1:2] in {"-", "+", "`"} for hunk in hunks_of(change) for row in hunk.rows if row[0] == " "):
        return None
    return each(change, Hunk.header, lambda hunk: [row[1:] if row[0] == " " else row for row in marked(change, hunk)])


def diff_of_the_diff(change: Change) -> str:
    """A patch that makes a file of the patch."""
    return text(["--- /dev/null", "+++ b/made.patch", f"@@ -0,0 +1,{len(unified(change))} @@",
                 *(f"+{row}" for row in unified(change))])  # fmt: skip


def fenced(rows: Sequence[str], marks: str = "```", info: str = "") -> str:
    return text([f"{marks}{info}", *rows, marks])


ALL = frozenset({NOT_FOUND, AMBIGUOUS, INVALID, TWO_WAYS})

HABITS: tuple[Habit, ...] = (
    Habit(name="plain", good=True, write=lambda c: text(unified(c))),
    Habit(name="not ended", good=True, write=lambda c: text(unified(c))[:-1]),
    Habit(name="blank rows around", good=True, write=lambda c: "\n\n" + text(unified(c)) + "\n\n\n"),
    Habit(name="without prefixes", good=True, write=lambda c: text(unified(c, head=(f"--- {c.path}", f"+++ {c.path}")))),
    Habit(name="without header", good=True, named=True, write=lambda c: text(unified(c, head=()))),
    Habit(name="labels for a header", good=True, named=True, write=lambda c: text(unified(c, head=("--- original", "+++ modified")))),
    Habit(name="git's header", good=True, write=lambda c: text([f"diff --git a/{c.path} b/{c.path}", "index 83db48f..bf2a5c1 100644", *unified(c)])),
    Habit(name="git's header alone", good=True, write=lambda c: text([f"diff --git a/{c.path} b/{c.path}", *unified(c, head=())])),
    Habit(name="time stamps", good=True, write=lambda c: text(unified(c, head=(f"--- {c.path}\t2026-01-02 03:04:05.0 +0000", f"+++ {c.path}\t2026-01-02 03:04:06.0 +0000")))),
    Habit(name="quoted paths", good=True, write=lambda c: text(unified(c, head=(f'--- "a/{c.path}"', f'+++ "b/{c.path}"')))),
    Habit(name="fenced", good=True, write=lambda c: fenced(unified(c), info="diff")),
    Habit(name="fenced with tildes, prose around", good=True, write=lambda c: f"Here is the change:\n\n{fenced(unified(c), '~~~')}\nIt does:\n\n- one thing\n"),
    Habit(name="crlf", good=True, write=lambda c: text(unified(c)).replace("\n", "\r\n")),
    Habit(name="blank context without its blank", good=True, write=lambda c: text([stripped(row) for row in unified(c)])),
    Habit(name="much context", good=True, write=lambda c: text(unified(c, context=12))),
    Habit(name="little context", unique=True, context=1, write=lambda c: text(unified(c, context=1))),
    Habit(name="no context", context=0, write=lambda c: text(unified(c, context=0))),
    Habit(name="counts too high by 1", unique=True, counts=lambda h: (len(h.old) + 1, len(h.new) + 1), write=lambda c: each(c, lambda h: h.header(more=1))),
    Habit(name="counts too high by 4", unique=True, counts=lambda h: (len(h.old) + 4, len(h.new) + 4), write=lambda c: each(c, lambda h: h.header(more=4))),
    Habit(name="counts too low by 1", unique=True, write=lambda c: each(c, lambda h: h.header(more=-1))),
    Habit(name="counts too low by 2", unique=True, write=lambda c: each(c, lambda h: h.header(more=-2))),
    Habit(name="counts missing", unique=True, write=lambda c: each(c, lambda h: f"@@ -{h.old_start} +{h.new_start} @@")),
    Habit(name="lines off by 1", unique=True, write=lambda c: each(c, lambda h: h.header(shift=1))),
    Habit(name="lines off by 7", unique=True, write=lambda c: each(c, lambda h: h.header(shift=7))),
    Habit(name="lines off by 900", unique=True, write=lambda c: each(c, lambda h: h.header(shift=900))),
    Habit(name="all at line 1", unique=True, counts=lambda h: (5, 5), write=lambda c: each(c, lambda h: "@@ -1,5 +1,5 @@")),
    Habit(name="no numbers", unique=True, write=lambda c: each(c, lambda h: "@@ @@")),
    Habit(name="bare at-signs", unique=True, write=lambda c: each(c, lambda h: "@@")),
    Habit(name="dots for numbers", unique=True, write=lambda c: each(c, lambda h: "@@ ... @@")),
    Habit(name="letters for numbers", unique=True, write=lambda c: each(c, lambda h: "@@ -XX,X +XX,X @@")),
    Habit(name="headings for numbers", unique=True, write=stacked),
    Habit(name="numbers and headings", good=True, write=lambda c: each(c, lambda h: f"{h.header()} {heading_of(c, h) or ''}")),
    Habit(name="backwards", good=True, write=backwards),
    Habit(name="one header for each hunk", unique=True, write=in_turn),
    Habit(name="line numbers pasted", unique=True, newline_marked=False, write=numbered),
    Habit(name="context without its blank", unique=True, write=no_gutter),
    Habit(name="marks of no newline everywhere", unique=True, newline_marked=False, write=lambda c: each(c, Hunk.header, lambda h: marked(c, h, always=True))),
    Habit(name="without marks of no newline", unique=True, newline_marked=False, write=lambda c: each(c, Hunk.header, lambda h: h.rows)),
    Habit(name="one word misquoted", newline_marked=False, write=misquoted),
    Habit(name="trailing blanks", newline_marked=False, write=lambda c: respelt(c, lambda row: row + "  ")),
    Habit(name="tabs as blanks", newline_marked=False, write=lambda c: respelt(c, lambda row: row.replace("\t", "    "), " -+")),
    Habit(name="indented deeper", newline_marked=False, write=lambda c: respelt(c, lambda row: f"    {row}", " -+")),
    Habit(name="escaped for a page", newline_marked=False, write=lambda c: respelt(c, html.escape)),
    Habit(name="curled quotes", newline_marked=False, write=lambda c: respelt(c, lambda row: row.replace('"', "\u201d").replace("'", "\u2019"))),
    Habit(name="dots for context", newline_marked=False, codes=ALL, write=elided),
    Habit(name="lines left out", bad=True, newline_marked=False, codes=frozenset({INVALID}), write=lambda c: each(c, Hunk.header, lambda h: (*h.rows, "+# ... existing code ..."))),
    Habit(name="begin patch", unique=True, form="begin_patch", newline_marked=False, write=lambda c: text(begin_patch(c))),
    Habit(name="begin patch, no end: it may be cut off", bad=True, codes=frozenset({INVALID}), form="begin_patch", newline_marked=False, write=lambda c: text(begin_patch(c, end=False))),
    Habit(name="begin patch without frame", unique=True, form="begin_patch", newline_marked=False, write=lambda c: text(begin_patch(c)[1:-1])),
    Habit(name="begin patch, fenced", unique=True, form="begin_patch", newline_marked=False, write=lambda c: f"So:\n{fenced(begin_patch(c))}"),
    Habit(name="begin patch, crlf", unique=True, form="begin_patch", newline_marked=False, write=lambda c: text(begin_patch(c)).replace("\n", "\r\n")),
    Habit(name="begin patch, headings", unique=True, form="begin_patch", newline_marked=False, write=lambda c: text(begin_patch(c, headings=True))),
    Habit(name="begin patch, in a shell", unique=True, form="begin_patch", newline_marked=False, write=lambda c: text(["apply_patch <<'EOF'", *begin_patch(c), "EOF"])),
    Habit(name="search and replace", unique=True, form="search_replace", newline_marked=False, named=True, write=lambda c: text(blocks(c))),
    Habit(name="search and replace, named", unique=True, form="search_replace", newline_marked=False, write=lambda c: text([c.path, *blocks(c)])),
    Habit(name="search and replace, fenced", unique=True, form="search_replace", newline_marked=False, write=lambda c: f"**{c.path}**\n{fenced(blocks(c), info='python')}"),
    Habit(name="search and replace, named inside", unique=True, form="search_replace", newline_marked=False, write=lambda c: fenced([c.path, *blocks(c)])),
    Habit(name="search and replace, crlf", unique=True, form="search_replace", newline_marked=False, write=lambda c: text([c.path, *blocks(c)]).replace("\n", "\r\n")),
    Habit(name="search and replace, little context", unique=True, context=1, form="search_replace", newline_marked=False, write=lambda c: text([c.path, *blocks(c, 1)])),
    Habit(name="whole file", good=True, form="whole_file", newline_marked=False, named=True, write=lambda c: fenced(c.after.splitlines(), "````")),
    Habit(name="whole file, named", good=True, form="whole_file", newline_marked=False, write=lambda c: f"`{c.path}`:\n\n{fenced(c.after.splitlines(), '~~~')}"),
)  # fmt: skip


def cases() -> Iterator[Case]:
    """In one order, always the same."""
    for change in changes():
        for habit in HABITS:
            case = _case(change, habit)
            if case is not None:
                yield case
    for change in changes():
        made = diff_of_the_diff(change)
        yield Case(name=f"{change.name}: a diff of a diff", before={}, patch=made,
                   after={"made.patch": text(unified(change))}, form="unified")  # fmt: skip


def _case(change: Change, habit: Habit) -> Case | None:
    if not habit.newline_marked and change.before.endswith("\n") != change.after.endswith("\n"):
        return None
    patch = habit.write(change)
    if patch is None:
        return None
    hunks = hunks_of(change, habit.context)
    once = all(occurrences(change.before, hunk.old) == 1 for hunk in hunks if hunk.old)
    bad, codes = (True, frozenset({INVALID})) if seems_cut(habit, hunks) else (habit.bad, habit.codes)
    must = habit.good or (habit.unique and once and all(hunk.old for hunk in hunks))
    after = change.after
    if habit.form == "whole_file" and not after.endswith("\n"):
        after += "\n"  # a fence can't say otherwise
    return Case(
        name=f"{change.name}: {habit.name}",
        before={change.path: change.before},
        patch=patch,
        path=change.path if habit.named else None,
        after=None if bad else {change.path: after},
        codes=frozenset() if must and not bad else codes,
        form=habit.form,
    )
