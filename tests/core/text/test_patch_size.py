"""Reading a patch costs as much as it is long, and one that is too long is refused before it is read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import ClassVar

import pytest

from orchestrator.core.errors import CallerError, PatchInvalid
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.forms.hunks import FilePatch, PatchHunk
from orchestrator.core.text.forms.recognise import joined, parse
from orchestrator.core.text.forms.rows import MAX_BYTES, MAX_FILES, MAX_ROWS
from orchestrator.core.text.patch import locate_patch

Write = Callable[[int], str]

BEGIN, UPDATE = "*** Begin Patch\n", "*** Update File: a\n"
END = "*** End Patch\n"
HEAD = "--- a/a\n+++ b/a\n"
HUNK = "@@ -1 +1 @@\n-a\n+b\n"
SEARCH, BETWEEN, REPLACE = "<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE\n"
DOTS = "# ... existing code $\n"


def shape(*parts: str | tuple[str]) -> Write:
    """A patch of these parts, those in brackets `n` times, each time with another number for the `$`."""

    def write(n: int) -> str:
        return "".join(
            part if isinstance(part, str) else "".join(part[0].replace("$", str(i)) for i in range(n)) for part in parts
        )

    return write


SHAPES: dict[str, Write] = {
    "shell's ends": shape(BEGIN, UPDATE, "@@\n", ("EOF\n",), END),
    "fences in a hunk": shape(BEGIN, UPDATE, "@@\n a\n", ("```\nprose\n",), "+b\n", END),
    "fences behind a hunk": shape(BEGIN, UPDATE, "@@\n-a\n+b\n", END, ("```\nprose\n",)),
    "hunks": shape(BEGIN, UPDATE, ("@@\n-a\n+b\n",), END),
    "added files": shape(BEGIN, ("*** Add File: $\n+x\n",), END),
    "headings": shape(BEGIN, UPDATE, ("@@ x\n",), " a\n", END),
    "one long hunk": shape(HEAD, "@@ -1 +1,9999 @@\n", ("+x\n",)),
    "one long hunk, miscounted": shape(HEAD, "@@ -1 +1,99 @@\n", ("+x\n",), " a\n"),
    "a long hunk in a fence": shape("```\n", HEAD, "@@ @@\n", ("+x\n",), " a\n```\n"),
    "hunks in fences": shape((f"```\n{HEAD}@@ @@\n-a\n+b\n```\nand\n",)),
    "signatures": shape(HEAD, "@@ @@\n a\n", ("-- \n",), "+b\n"),
    "files": shape((f"--- a/$\n+++ b/$\n{HUNK}",)),
    "one file again": shape((HEAD + HUNK,)),
    "renames": shape(("diff --git a/$ b/x$\nrename from $\nrename to x$\n",)),
    "headers alone": shape(HEAD, ("@@ -1,9 +1,9 @@\n",)),
    "blocks": shape("a\n", (f"{SEARCH}a\n{BETWEEN}b\n{REPLACE}",)),
    "a long block": shape("a.b\n", SEARCH, ("a\n",), BETWEEN, ("b\n",), REPLACE),
    "dots in a block": shape("a.b\n", SEARCH, (DOTS,), BETWEEN, (DOTS,), REPLACE),
    "blank rows": shape(("\n",), HEAD, HUNK, ("\n",)),
    "fences": shape(("```\n",)),
    "a long fence": shape("```\n", ("x\n",), "```\n"),
    "a long fence of a diff": shape("```diff\n", ("+x\n",), "```\n"),
}


def calls(patch: str) -> int:
    """How many functions reading it calls, built-in ones and steps of generators too."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        parse(patch, "a")
    except CallerError:
        pass
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("write", [pytest.param(write, id=name) for name, write in SHAPES.items()])
def test_four_times_the_text_is_four_times_the_work(write: Write) -> None:
    once, four = calls(write(200)), calls(write(800))
    assert four < 6 * once + 100


class Counted(str):
    """A path that counts how often it is compared."""

    compared: ClassVar[int] = 0
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)


def test_many_files_are_not_compared_with_each_other() -> None:
    hunk = PatchHunk(0, (("-", "a"), ("+", "b")))
    files = [FilePatch(path, path, (hunk,)) for path in map(Counted, map(str, range(MAX_FILES)))]
    Counted.compared = 0
    assert len(joined(files)) == MAX_FILES
    assert Counted.compared < 20 * MAX_FILES


@pytest.mark.parametrize("line", [pytest.param("line {}", id="each another"), pytest.param("same", id="all the same")])
def test_many_hunks_are_not_looked_for_in_all_of_the_file(line: str) -> None:
    def compared(size: int) -> int:
        lines = [line.format(at) for at in range(size)]
        patch = parse(HEAD + "".join(f"@@ -{at} +{at} @@\n-{text}\n+new\n" for at, text in enumerate(lines, 1)))
        base = Document(tuple(map(Counted, lines)), ("\n",) * size)
        Counted.compared = 0
        found = locate_patch(patch.files[0], base)
        assert len(found.edits) == size
        return Counted.compared

    assert compared(800) < 6 * compared(200)


def test_a_file_that_comes_again_keeps_every_section() -> None:
    (file,) = parse(SHAPES["one file again"](5)).files
    assert len(file.then) == 4


@pytest.mark.parametrize(("patch", "detail", "value"), [
    pytest.param("x\n" * (MAX_ROWS + 1), "rows", MAX_ROWS + 1, id="rows"),
    pytest.param("é" * (MAX_BYTES // 2 + 1), "bytes", MAX_BYTES + 2, id="bytes"),
    pytest.param(SHAPES["files"](MAX_FILES + 1), "files", MAX_FILES + 1, id="files"),
    pytest.param(SHAPES["added files"](MAX_FILES + 1), "files", MAX_FILES + 1, id="added files"),
    pytest.param(SHAPES["one file again"](MAX_FILES + 1), "files", MAX_FILES + 1, id="one file again and again"),
])  # fmt: skip
def test_what_is_too_long_is_refused(patch: str, detail: str, value: int) -> None:
    with pytest.raises(PatchInvalid) as refused:
        parse(patch)
    assert refused.value.details[detail] == value
    assert "several patches" in (refused.value.hint or "")


def test_as_much_as_is_allowed_is_read() -> None:
    assert len(parse(SHAPES["files"](MAX_FILES)).files) == MAX_FILES
    (file,) = parse(shape(HEAD, "@@ @@\n a\n", ("+x\n",))(MAX_ROWS - 4)).files
    assert len(file.hunks[0].lines) == MAX_ROWS - 3
