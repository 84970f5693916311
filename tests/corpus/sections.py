"""Files of sections that are alike, in ten forms: what somebody else does to them, and an edit that does not know.

Lines have identities, and both sides' changes are made on these: so what is meant is known by construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

NAMES = "alpha beta gamma delta store user group".split()
KEYS = "size mode path limit retries owner".split()
THEIRS, MINE = 1_000, 9_999
"""Identities of lines that the sides bring."""


class Line(msgspec.Struct, frozen=True):
    """A line with its identity; a plain one may be changed alone."""

    id: int
    text: str
    plain: bool = False


Section = tuple[Line, ...]


class File(msgspec.Struct, frozen=True):
    """A text of sections between a head and a tail."""

    path: str
    head: Section
    sections: tuple[Section, ...]
    tail: Section

    @property
    def lines(self) -> list[Line]:
        return [*self.head, *(line for section in self.sections for line in section), *self.tail]


class Form(msgspec.Struct, frozen=True):
    """How a section is written; `{name}` and `{key}` are filled in, and the row with a key is there once for each."""

    path: str
    rows: tuple[str, ...]
    head: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()


FORMS = (
    Form("items.yaml", ("- name: {name}", "  {key}: 1")),
    Form("map.yaml", ("  {name}:", "    {key}: 1"), ("services:",)),
    Form("named_last.yaml", ("  - uses: tool", "    {key}: 1", "    name: {name}"), ("steps:",)),
    Form("a.ini", ("[{name}]", "{key} = 1", "")),
    Form("a.md", ("## {name}", "", "- {key} is 1", ""), ("# Title", "")),
    Form("titles.md", ("# {name}", "", "- {key} is 1", "")),
    Form(
        "a.py",
        ("def {name}(item):", "    for x in item:", "        {key}(x)", "    return item", "", ""),
        ("import os", "", ""),
    ),
    Form(
        "a.go",
        (
            "func {name}(x int) error {",
            "\tif err := run(x); err != nil {",
            "\t\t{key}(x)",
            "\t\treturn err",
            "\t}",
            "\treturn nil",
            "}",
            "",
        ),
        ("package a", ""),
    ),
    Form("a.c", ("static int {name}(int x)", "{", "    {key}(x);", "    return x;", "}", ""), ("#include <a.h>", "")),
    Form("a.json", ("  {", '    "name": "{name}",', '    "{key}": 1,', '    "last": 1', "  },"), ("[",), ("  {}", "]")),
    Form("named_last.json", ("  {", '    "{key}": 1,', '    "name": "{name}"', "  },"), ("[",), ("  {}", "]")),
)


def made(r: Random) -> File:
    """Three or four sections, most of them with equal bodies."""
    form = r.choice(FORMS)
    head = _numbered(0, form.head)
    count = len(head)
    common = r.sample(KEYS, r.randint(1, 4))
    sections: list[Section] = []
    for name in r.sample(NAMES, r.randint(3, 4)):
        keys = list(common)
        if r.random() < 0.4:
            keys[r.randrange(len(keys))] = r.choice([key for key in KEYS if key not in common])
        rows = [
            row.replace("{name}", name).replace("{key}", key)
            for row in form.rows
            for key in (keys if "{key}" in row else [""])
        ]
        sections.append(_numbered(count, rows))
        count += len(rows)
    return File(form.path, head, tuple(sections), _numbered(count, form.tail))


def _numbered(first: int, rows: Sequence[str]) -> Section:
    return tuple(Line(first + at, row, any(key in row for key in (*KEYS, "return"))) for at, row in enumerate(rows))


def others(r: Random, file: File) -> File:
    """What somebody else did: sections swapped, moved, taken away, doubled, copied, named anew; or lines changed.

    Where two of these would leave nobody sure which section is the old one, it is one of them alone.
    """
    kinds = ["swap", "move", "delete", "double", "copy", "rename"]
    kind = r.choice([*kinds, "line"])
    file = _changed(r, file, kind)
    if r.random() < 0.3:
        unsure = kind in ("delete", "double", "copy", "rename")
        file = _changed(r, file, r.choice(["swap", "move", "line"] if unsure else kinds))
    return file


def _changed(r: Random, file: File, kind: str) -> File:
    sections = list(file.sections)
    at = r.randrange(len(sections))
    match kind:
        case "swap":
            one, two = r.sample(range(len(sections)), 2)
            sections[one], sections[two] = sections[two], sections[one]
        case "move":
            taken = sections.pop(at)
            sections.insert(r.randrange(len(sections) + 1), taken)
        case "delete":
            del sections[at]
        case "double":
            sections.insert(at, sections[at])  # which of the two is meant, nobody knows
        case "copy":
            lines = tuple(msgspec.structs.replace(line, id=THEIRS + line.id) for line in sections[at])
            sections.insert(at + r.randrange(2), _renamed(lines, "copied"))
        case "rename":
            sections[at] = _renamed(sections[at], "renamed")
        case _:
            change = Change(r.choice(["replace", "insert", "remove"]), _plain(r, sections[at]), "theirs", THEIRS)
            sections[at] = tuple(change.done(sections[at]) or ())
    return msgspec.structs.replace(file, sections=tuple(sections))


def _renamed(lines: Section, name: str) -> Section:
    at, old = next((at, name) for at, line in enumerate(lines) for name in NAMES if name in line.text)
    new = msgspec.structs.replace(lines[at], text=lines[at].text.replace(old, name))
    return (*lines[:at], new, *lines[at + 1 :])


def _plain(r: Random, lines: Sequence[Line]) -> int:
    return r.choice([line.id for line in lines if line.plain])


class Change(msgspec.Struct, frozen=True):
    """Another text for a line, a line behind one, or a line taken away."""

    kind: str
    target: int
    word: str
    id: int = MINE

    def text(self, line: Line) -> str:
        """What a line becomes, or what comes behind it."""
        key = next(key for key in (*KEYS, "return", "theirs") if key in line.text)
        return line.text.replace(key, self.word)

    def done(self, lines: Sequence[Line], nth: int = 0) -> list[Line] | None:
        """None where its line is gone; of several the nth."""
        found = [at for at, line in enumerate(lines) if line.id == self.target]
        if len(found) <= nth:
            return None
        at = found[nth]
        line = lines[at]
        new = msgspec.structs.replace(line, text=self.text(line))
        middle = {"replace": [new], "insert": [line, msgspec.structs.replace(new, id=self.id)], "remove": []}
        return [*lines[:at], *middle[self.kind], *lines[at + 1 :]]


def change_in(r: Random, file: File) -> Change:
    return Change(r.choice(["replace", "insert", "remove"]), _plain(r, file.lines), "mine")


def text_of(lines: Sequence[Line]) -> str:
    return "".join(f"{line.text}\n" for line in lines)


def meant(base: Sequence[Line], now: Sequence[Line], change: Change) -> set[str]:
    """The texts in which both changes are; none where the other side changed or took the very line otherwise."""
    was = next(line for line in base if line.id == change.target)
    there = [line for line in now if line.id == change.target]
    found: set[str] = set()
    for nth, line in enumerate(there):
        both = change.done(now, nth)
        if both is not None and line.text == was.text:
            found.add(text_of(both))
            at = next((at for at, line in enumerate(both) if line.id == MINE), len(both))
            if at + 1 < len(both) and both[at + 1].id == THEIRS:  # both inserted here: in either order
                found.add(text_of([*both[:at], both[at + 1], both[at], *both[at + 2 :]]))
    if not there and change.kind == "remove":
        found.add(text_of(now))
    return found


def quoted(r: Random, base: Sequence[Line], change: Change) -> tuple[str, str | None]:
    """A search with what replaces it, or a patch with None: with no more than three lines before and after."""
    at = next(at for at, line in enumerate(base) if line.id == change.target)
    before, after = r.randint(0, 3), r.randint(0, 3)
    form = r.choice(["edit", "unified", "unnumbered", "heading", "twice"])
    first, last = max(0, at - before), min(len(base), at + 1 + after)
    old = base[first:last]
    new = change.done(old) or []
    if form == "edit":
        return text_of(old), text_of(new)
    rows = [f" {line.text}" for line in base[first:at]]
    rows += [f" {base[at].text}"] if change.kind == "insert" else [f"-{base[at].text}"]
    rows += [] if change.kind == "remove" else [f"+{change.text(base[at])}"]
    rows += [f" {line.text}" for line in base[at + 1 : last]]
    named = [line.text for line in base[:first] if any(name in line.text for name in NAMES)]
    if form == "unified":
        return _rows("--- a/PATH", "+++ b/PATH", f"@@ -{first + 1},{len(old)} +{first + 1},{len(new)} @@", *rows), None
    if form == "unnumbered":
        return _rows("--- a/PATH", "+++ b/PATH", "@@ @@", *rows), None
    heads = named and not named[-1].startswith(("    name", '    "name'))  # which may stand last, and head nothing
    update = ["*** Update File: PATH", f"@@ {named[-1].strip()}" if heads else "@@"]
    other: list[str] = []
    if form == "twice" and not any(name in base[0].text for name in NAMES):  # also behind the head's first line
        other = ["*** Update File: PATH", "@@", f" {base[0].text}", "+added"]
    return _rows("*** Begin Patch", *update, *rows, *other, "*** End Patch"), None


def _rows(*rows: str) -> str:
    return "".join(f"{row}\n" for row in rows)
