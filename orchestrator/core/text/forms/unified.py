"""Parses unified diffs: git's, and those that models write from memory."""

from __future__ import annotations

import re

import msgspec

from orchestrator.core.text.forms.hunks import FilePatch, read_hunks, skip_blank
from orchestrator.core.text.forms.rows import Rows, only_prose

_PREAMBLE = re.compile(r"(?:index [0-9a-f]+\.\.|index \d|old mode |(?:dis)?similarity index |Index: |={20,}\Z)")
_MODE = re.compile(r"new (?:file )?mode (\d+)\Z")
_MODES = {"100644": False, "100755": True}
_OTHER = re.compile(r"(?:copy (?:from|to) |GIT binary patch|Binary files .* differ)")
_HEAD = re.compile(r'diff --git (?:a/(.+) b/\1|"a/(.+)" "b/\2")\Z')
_RENAME = {"rename from ": "old", "rename to ": "new"}
_STAMP = re.compile(
    r"(?:\t.*| +\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*| +\((?:original|modified|revised|old|new|before|after)\))\Z"
)
_LABEL = re.compile(r"(?:original|modified|old|new|before|after|a|b|file|current|updated|revised)\Z", re.IGNORECASE)
_SIGNED = re.compile(r"-- ?\Z")
_ESCAPE = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')
_UNESCAPED = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}

Names = tuple[str | None, str | None]


def parse_rows(rows: Rows, *, named: bool = False) -> tuple[FilePatch, ...]:
    r"""Read a unified diff of one file or of several; a file may come more than once.

    Lines may end with `\r\n`; git's preamble (`diff --git`, `index`, modes) and the `---` and `+++`
    lines may be missing, and blank lines and prose may be around. The prefixes `a/` and `b/` are dropped
    where both are there; a quoted path is unquoted, a time stamp is dropped. An empty line within a hunk is
    an empty context line, as in GNU diff. Counts that do not fit are left out of account, and so are headers
    without numbers. Git's renames are read, its patches that make or remove an empty file, and whether a file
    becomes executable. `named`: the call names the file, so headers like `--- original` name none.
    All else raises PatchInvalid, whose message names the line: no hunk, a hunk without lines, changed lines
    outside of hunks, a last hunk that may be cut off, copies, binary patches, links and submodules.
    """
    patches: list[FilePatch] = []
    _skip(rows)
    while not patches or rows.at < len(rows):
        patches.append(_file(rows, named=named))
        _skip(rows)
    if patches[-1].hunks and patches[-1].hunks[-1].short:
        raise rows.refused(
            "the last hunk has fewer lines than its header counts, so the patch may be cut off",
            hint="Send it whole, or with the right counts; in parts, if it is long.",
        )
    if named and not any(patch.headed for patch in patches):  # pieces of one, with prose between
        return (msgspec.structs.replace(patches[0], hunks=tuple(hunk for one in patches for hunk in one.hunks)),)
    return tuple(patches)


def begins(rows: Rows, at: int) -> bool:
    """Whether a unified diff, or the next file's part of one, begins at a row."""
    row = rows.rows[at]
    if row.startswith("--- "):
        return at + 1 < len(rows) and rows.rows[at + 1].startswith(("+++ ", "@@"))
    return row.startswith(("@@", "diff --git ", "diff -", "Index: ")) or _OTHER.match(row) is not None


def announces(row: str) -> bool:
    """Whether a row is one of those that are before a file's hunks."""
    return row.startswith(("diff ", "--- ", "+++ ", *_RENAME)) or any(p.match(row) for p in (_PREAMBLE, _MODE))


def _file(rows: Rows, *, named: bool) -> FilePatch:
    """The patch of the next file."""
    top = rows.at
    head, git, executable = _preamble(rows)
    start = rows.at
    names = _names(rows, named=named) or git
    if names is None and head is not None and rows.row.startswith("@@"):
        names = head, head
    if git is not None and names != git:  # git's header says all of its file; these lines are the next one's
        rows.at = start
        return FilePatch(git[0], git[1], (), executable=executable)
    skip_blank(rows)
    hunks = read_hunks(rows, lambda at: _ends(rows, at))
    if not hunks and git is None:
        if rows.at == top and rows.row.strip():
            raise rows.refused(f"{rows.row[:60]!r} is not a hunk header")
        raise rows.refused("there is no hunk ('@@ -1,3 +1,4 @@') in the patch")
    old, new = names or (None, None)
    return FilePatch(old, new, hunks, headed=names is not None, executable=executable)


def _skip(rows: Rows) -> None:
    """To where the next file's part begins, or to the end. Raises PatchInvalid for changed lines on the way."""
    first = rows.at == 0
    while rows.at < len(rows) and not begins(rows, rows.at):
        row = rows.row
        if not first and _SIGNED.match(row):
            rows.at = len(rows)
            return
        if (first and announces(row) and not row.startswith(("+++ ", "diff "))) or _MODE.match(row):
            return
        if not first and not only_prose((row,)):
            raise rows.refused("the line belongs to no hunk")
        rows.at += 1


def _ends(rows: Rows, at: int) -> bool:
    row = rows.rows[at]
    if row.startswith(("@@", "diff --git ", "Index: ", "*** End Patch")):
        return True
    if row.startswith("--- "):
        below = rows.rows[at + 1 : at + 3]
        return len(below) == 2 and below[0].startswith("+++ ") and below[1].startswith("@@")
    if _SIGNED.match(row):
        return max(rows.last_of_a_patch, rows.last_but_one) <= at
    return at in rows.closings


def _preamble(rows: Rows) -> tuple[str | None, Names | None, bool | None]:
    """Git's lines before the hunks: its file; the two names, where they say all there is to do; the new mode."""
    heads = 0
    head: str | None = None
    renamed: dict[str, str] = {}
    empty = ""
    executable: bool | None = None
    while rows.at < len(rows):
        row = rows.row
        if row.startswith("diff "):
            heads += 1
            if heads > 1:
                break
            found = _HEAD.match(row)
            head = (found[1] or _unquoted(found[2])) if found else None
        elif _OTHER.match(row):
            raise rows.refused("copies and binary patches are not supported; use write_file")
        elif (start := next((key for key in _RENAME if row.startswith(key)), None)) is not None:
            renamed[_RENAME[start]] = plain_name(row[len(start) :])
        elif (mode := _MODE.match(row)) is not None:
            if mode[1] not in _MODES:
                raise rows.refused(f"mode {mode[1]} is of a link or a submodule; only files can be patched")
            executable = _MODES[mode[1]]
            empty = "new" if row.startswith("new file") else empty or "mode"
        elif row.startswith("deleted file mode "):
            empty = "deleted"
        elif row.strip() and not _PREAMBLE.match(row):
            break
        rows.at += 1
    if len(renamed) == 2:
        return head, (renamed["old"], renamed["new"]), executable
    if empty and head is not None:
        return head, (None if empty == "new" else head, None if empty == "deleted" else head), executable
    return head, None, executable


def _names(rows: Rows, *, named: bool) -> Names | None:
    if not rows.row.startswith("--- "):
        return None
    old = _name(rows)
    rows.at += 1
    if not rows.row.startswith("+++ "):
        raise rows.refused("a '+++' line must follow the '---' line")
    new = _name(rows)
    rows.at += 1
    if named and all(name is not None and _LABEL.match(name) for name in (old, new)):
        return None
    prefixed = (old is None or old.startswith("a/"), new is None or new.startswith("b/"))
    if all(prefixed) or (old and new and ((prefixed[0] and old[2:] == new) or (prefixed[1] and new[2:] == old))):
        old = old[2:] if old and prefixed[0] else old
        new = new[2:] if new and prefixed[1] else new
    if old is None and new is None:
        raise rows.refused("both sides are /dev/null")
    return old, new


def _name(rows: Rows) -> str | None:
    raw = plain_name(_STAMP.sub("", rows.row[4:]).strip())
    if not raw:
        raise rows.refused("the path is missing")
    return None if raw == "/dev/null" else raw


def plain_name(raw: str) -> str:
    """A name as it is, or out of its quotes."""
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
