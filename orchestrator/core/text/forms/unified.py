"""Parses unified diffs: git's, and those that models write from memory."""

from __future__ import annotations

import re

import msgspec

from orchestrator.core.text.forms.bodies import at_the_end, cut_off, header_of, read_hunk
from orchestrator.core.text.forms.rows import MAX_HEADINGS, Rows, only_prose, plain_fence
from orchestrator.core.text.hunks import FilePatch, PatchHunk

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
    reader = _Reader(rows, named=named)
    patches = [reader.read()]
    while reader.more():
        patches.append(reader.read())
    if reader.cut_off:
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


class _Reader:
    """One pass over the rows of a patch."""

    def __init__(self, rows: Rows, *, named: bool) -> None:
        self.rows, self.named = rows, named
        self.cut_off = False  # what was read last has too few lines
        self._skip()

    def more(self) -> bool:
        """Whether another file's patch follows."""
        self._skip()
        return self.rows.at < len(self.rows)

    def read(self) -> FilePatch:
        """The patch of the next file."""
        top = self.rows.at
        self.cut_off = False
        head, git, executable = self._preamble()
        start = self.rows.at
        names = self._names() or git or ((head, head) if head is not None and self.rows.row.startswith("@@") else None)
        if git is not None and names != git:  # git's header says all of its file; these lines are the next one's
            self.rows.at = start
            return FilePatch(git[0], git[1], (), executable=executable)
        hunks: list[PatchHunk] = []
        anchors: tuple[str, ...] = ()
        self._skip_blank()
        while self.rows.row.startswith("@@"):
            header = header_of(self.rows.row)
            self.rows.at += 1
            hunk = read_hunk(self.rows, header, self._ends)
            self.cut_off = hunk is not None and cut_off(header, hunk)
            if hunk is not None:
                hunk = msgspec.structs.replace(hunk, anchors=(*anchors, *hunk.anchors))
                hunks.append(at_the_end(hunk))
                anchors = ()
            elif header.heading and self.rows.row.startswith("@@"):
                anchors = (*anchors, header.heading)
                if len(anchors) > MAX_HEADINGS:
                    raise self.rows.too_deep()
            else:
                raise self.rows.refused("the hunk is empty")
            self._skip_blank()
        if not hunks and git is None:
            if self.rows.at == top and self.rows.row.strip():
                raise self.rows.refused(f"{self.rows.row[:60]!r} is not a hunk header")
            raise self.rows.refused("there is no hunk ('@@ -1,3 +1,4 @@') in the patch")
        old, new = names or (None, None)
        return FilePatch(old, new, tuple(hunks), headed=names is not None, executable=executable)

    def _skip_blank(self) -> None:
        """To the next hunk of the same file, over blank rows and fences alone."""
        at = self.rows.at
        while at < len(self.rows) and (not self.rows.rows[at].strip() or plain_fence(self.rows.rows[at])):
            at += 1
        if at < len(self.rows) and self.rows.rows[at].startswith("@@"):
            self.rows.at = at

    def _skip(self) -> None:
        """To where the next file's part begins, or to the end. Raises PatchInvalid for changed lines on the way."""
        first = self.rows.at == 0
        while self.rows.at < len(self.rows) and not begins(self.rows, self.rows.at):
            row = self.rows.row
            if not first and _SIGNED.match(row):
                self.rows.at = len(self.rows)
                return
            if (first and announces(row) and not row.startswith(("+++ ", "diff "))) or _MODE.match(row):
                return
            if not first and not only_prose((row,)):
                raise self.rows.refused("the line belongs to no hunk")
            self.rows.at += 1

    def _ends(self, at: int) -> bool:
        rows = self.rows.rows
        row = rows[at]
        if row.startswith(("@@", "diff --git ", "Index: ", "*** End Patch")):
            return True
        if row.startswith("--- "):
            return at + 2 < len(rows) and rows[at + 1].startswith("+++ ") and rows[at + 2].startswith("@@")
        if _SIGNED.match(row):
            return max(self.rows.last_of_a_patch, self.rows.last_but_one) <= at
        return at in self.rows.closings

    def _preamble(self) -> tuple[str | None, Names | None, bool | None]:
        """Git's lines before the hunks: its file; the two names, where they say all there is to do; the new mode."""
        heads = 0
        head: str | None = None
        renamed: dict[str, str] = {}
        empty = ""
        executable: bool | None = None
        while self.rows.at < len(self.rows):
            row = self.rows.row
            if row.startswith("diff "):
                heads += 1
                if heads > 1:
                    break
                found = _HEAD.match(row)
                head = (found[1] or _unquoted(found[2])) if found else None
            elif _OTHER.match(row):
                raise self.rows.refused("copies and binary patches are not supported; use write_file")
            elif (start := next((key for key in _RENAME if row.startswith(key)), None)) is not None:
                renamed[_RENAME[start]] = _plain(row[len(start) :])
            elif (mode := _MODE.match(row)) is not None:
                if mode[1] not in _MODES:
                    raise self.rows.refused(f"mode {mode[1]} is of a link or a submodule; only files can be patched")
                executable = _MODES[mode[1]]
                empty = "new" if row.startswith("new file") else empty or "mode"
            elif row.startswith("deleted file mode "):
                empty = "deleted"
            elif row.strip() and not _PREAMBLE.match(row):
                break
            self.rows.at += 1
        if len(renamed) == 2:
            return head, (renamed["old"], renamed["new"]), executable
        if empty and head is not None:
            return head, (None if empty == "new" else head, None if empty == "deleted" else head), executable
        return head, None, executable

    def _names(self) -> Names | None:
        if not self.rows.row.startswith("--- "):
            return None
        old = self._name()
        self.rows.at += 1
        if not self.rows.row.startswith("+++ "):
            raise self.rows.refused("a '+++' line must follow the '---' line")
        new = self._name()
        self.rows.at += 1
        if self.named and all(name is not None and _LABEL.match(name) for name in (old, new)):
            return None
        prefixed = (old is None or old.startswith("a/"), new is None or new.startswith("b/"))
        if all(prefixed) or (old and new and ((prefixed[0] and old[2:] == new) or (prefixed[1] and new[2:] == old))):
            old = old[2:] if old and prefixed[0] else old
            new = new[2:] if new and prefixed[1] else new
        if old is None and new is None:
            raise self.rows.refused("both sides are /dev/null")
        return old, new

    def _name(self) -> str | None:
        raw = _plain(_STAMP.sub("", self.rows.row[4:]).strip())
        if not raw:
            raise self.rows.refused("the path is missing")
        return None if raw == "/dev/null" else raw


def _plain(raw: str) -> str:
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
