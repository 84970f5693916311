"""Unified diffs, git's among them, as they are sent."""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.core.errors import PatchInvalid
from orchestrator.core.text.patch import FilePatch, PatchHunk, Tag

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(?: .*)?\Z")
_PREAMBLE = re.compile(r"(?:index |old mode |(?:dis)?similarity index )")
_MODE = re.compile(r"new (?:file )?mode (\d+)\Z")
_MODES = {"100644": False, "100755": True}
_OTHER = re.compile(r"(?:copy |GIT binary patch|Binary files )")
_HEAD = re.compile(r'diff --git (?:a/(.+) b/\1|"a/(.+)" "b/\2")\Z')
_RENAME = {"rename from ": "old", "rename to ": "new"}
_ESCAPE = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')
_UNESCAPED = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}


def parse_unified(text: str) -> FilePatch:
    """As `parse_patches`, for one file. Raises PatchInvalid where there are several."""
    patches = parse_patches(text)
    if len(patches) > 1:
        raise PatchInvalid(f"the patch is of {len(patches)} files", hint="Send one file's.")
    return patches[0]


def parse_patches(text: str) -> tuple[FilePatch, ...]:
    r"""Read a unified diff of one file or of several.

    Lines may end with `\r\n`; git's preamble (`diff --git`, `index`, modes) and the `---` and `+++`
    lines may be missing, and blank lines may follow. The prefixes `a/` and `b/` are dropped where
    both are there; a quoted path is unquoted, a time stamp after a tab is dropped. An empty line
    within a hunk is an empty context line, as in GNU diff. Git's renames are read, its patches that
    make or remove an empty file, and whether a file becomes executable. All else raises PatchInvalid,
    whose message names the line: no hunk, counts that do not fit, a file named twice, copies, binary
    patches, links and submodules.
    """
    reader = _Reader(text.replace("\r\n", "\n").split("\n"))
    patches = [reader.read()]
    while reader.more():
        patches.append(reader.read())
    named = [path for patch in patches for path in {patch.old_path, patch.new_path} if path is not None]
    twice = next((path for path in named if named.count(path) > 1), None)
    if twice is not None:
        raise PatchInvalid(f"{twice} is patched twice", hint="Join its hunks under one header.")
    if len(patches) > 1 and not all(patch.headed for patch in patches):
        raise PatchInvalid(
            "several patches, but one of them names no file", hint="Give each its '---' and '+++' lines."
        )
    return tuple(patches)


class _Reader:
    """One pass over the lines of a patch; `at` is the next."""

    def __init__(self, rows: Sequence[str]) -> None:
        self.rows = rows
        self.at = 0

    def more(self) -> bool:
        """Whether another file's patch follows."""
        return any(row.strip() for row in self.rows[self.at :])

    def read(self) -> FilePatch:
        """The patch of the next file."""
        git, executable = self._preamble()
        top = self.at
        names = self._names() or git
        if git is not None and names != git:  # git's header says all of its file; these lines are the next one's
            self.at = top
            return FilePatch(git[0], git[1], (), executable=executable)
        hunks: list[PatchHunk] = []
        while self.at < len(self.rows):
            row = self.rows[self.at]
            if row.startswith("@@"):
                hunks.append(self._hunk())
            elif (not row.strip() and not self.more()) or (row.startswith(("diff ", "--- ")) and (hunks or git)):
                break
            elif hunks and row[:1] in {" ", "+", "-", ""}:
                raise self._refused("the hunk before has more lines than its header counts")
            else:
                raise self._refused(f"{row[:60]!r} is not a hunk header")
        if not hunks and git is None:
            raise self._refused("there is no hunk ('@@ -1,3 +1,4 @@') in the patch")
        old, new = names or (None, None)
        return FilePatch(old, new, tuple(hunks), headed=names is not None, executable=executable)

    def _preamble(self) -> tuple[tuple[str | None, str | None] | None, bool | None]:
        """Git's lines before the hunks: the two names, where they say all that there is to do; the new mode."""
        heads = 0
        head: str | None = None
        renamed: dict[str, str] = {}
        empty = ""
        executable: bool | None = None
        while self.at < len(self.rows):
            row = self.rows[self.at]
            if row.startswith("diff "):
                heads += 1
                if heads > 1:
                    break
                found = _HEAD.match(row)
                head = (found[1] or _unquoted(found[2])) if found else None
            elif _OTHER.match(row):
                raise self._refused("copies and binary patches are not supported; use write_file")
            elif (start := next((key for key in _RENAME if row.startswith(key)), None)) is not None:
                renamed[_RENAME[start]] = _plain(row[len(start) :])
            elif (mode := _MODE.match(row)) is not None:
                if mode[1] not in _MODES:
                    raise self._refused(f"mode {mode[1]} is of a link or a submodule; only files can be patched")
                executable = _MODES[mode[1]]
                empty = "new" if row.startswith("new file") else empty or "mode"
            elif row.startswith("deleted file mode "):
                empty = "deleted"
            elif row.strip() and not _PREAMBLE.match(row):
                break
            self.at += 1
        if len(renamed) == 2:
            return (renamed["old"], renamed["new"]), executable
        if empty and head is not None:
            return (None if empty == "new" else head, None if empty == "deleted" else head), executable
        return None, executable

    def _names(self) -> tuple[str | None, str | None] | None:
        if self.at >= len(self.rows) or not self.rows[self.at].startswith("--- "):
            return None
        old = self._name()
        self.at += 1
        if self.at >= len(self.rows) or not self.rows[self.at].startswith("+++ "):
            raise self._refused("a '+++' line must follow the '---' line")
        new = self._name()
        self.at += 1
        if (old is None or old.startswith("a/")) and (new is None or new.startswith("b/")):
            old, new = old and old[2:], new and new[2:]
        if old is None and new is None:
            raise self._refused("both sides are /dev/null")
        return old, new

    def _name(self) -> str | None:
        raw = _plain(self.rows[self.at][4:].split("\t")[0].rstrip())
        if not raw:
            raise self._refused("the path is missing")
        return None if raw == "/dev/null" else raw

    def _hunk(self) -> PatchHunk:
        header = _HUNK.match(self.rows[self.at])
        if header is None:
            raise self._refused("the hunk header is not of the form '@@ -1,3 +1,4 @@'")
        top = self.at
        old_start = int(header[1])
        old_left, new_left = (int(n) if n is not None else 1 for n in (header[2], header[4]))
        if old_left:
            old_start -= 1  # an empty span is named by the line before it
        if old_start < 0:
            raise self._refused("lines are counted from 1")
        self.at += 1
        lines: list[tuple[Tag, str]] = []
        unended = {"-": False, "+": False}
        while old_left or new_left or self._marked():
            if self.at >= len(self.rows):
                raise self._refused(f"the patch ends within the hunk of line {top + 1}")
            row = self.rows[self.at]
            if self._marked():
                self._unend(lines, unended)
            else:
                tag = self._tag(row, top)
                old_left, new_left = old_left - (tag != "+"), new_left - (tag != "-")
                if old_left < 0 or new_left < 0 or (unended["-"] and tag != "+") or (unended["+"] and tag != "-"):
                    raise self._refused(f"the counts in the hunk header of line {top + 1} do not fit its lines")
                lines.append((tag, row[1:]))
            self.at += 1
        if not lines:
            raise self._refused("the hunk is empty")
        return PatchHunk(old_start, tuple(lines), unended["-"], unended["+"])

    def _marked(self) -> bool:
        return self.at < len(self.rows) and self.rows[self.at].startswith("\\ ")

    def _unend(self, lines: Sequence[tuple[Tag, str]], unended: dict[str, bool]) -> None:
        if not lines:
            raise self._refused("the mark of a missing newline must follow a line")
        for side in ("-", "+") if lines[-1][0] == " " else (lines[-1][0],):
            unended[side] = True

    def _tag(self, row: str, top: int) -> Tag:
        if not row and self.at == len(self.rows) - 1:
            raise self._refused(f"the patch ends within the hunk of line {top + 1}")
        match row[:1]:
            case " " | "":
                return " "
            case "-":
                return "-"
            case "+":
                return "+"
            case _:
                raise self._refused(f"a line of the hunk of line {top + 1} begins with none of ' ', '-', '+'")

    def _refused(self, why: str) -> PatchInvalid:
        line = min(self.at, len(self.rows) - 1) + 1
        return PatchInvalid(
            f"line {line} of the patch: {why}.",
            hint="Send a unified diff whose hunk headers count their lines, or use edit_file.",
            details={"line": line},
        )


def _plain(raw: str) -> str:
    """A name as it stands, or out of its quotes."""
    return _unquoted(raw[1:-1]) if len(raw) > 1 and raw.startswith('"') and raw.endswith('"') else raw


def _unquoted(text: str) -> str:
    """A path out of git's C-style quotes: the escapes are bytes of its UTF-8 form."""
    raw = bytearray()
    at = 0
    for escape in _ESCAPE.finditer(text):
        raw += text[at : escape.start()].encode("utf-8", "surrogateescape")
        code = escape[1]
        raw.append(_UNESCAPED[code] if code in _UNESCAPED else int(code, 8) & 255)
        at = escape.end()
    raw += text[at:].encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "surrogateescape")
