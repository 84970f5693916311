"""The kinds of parameters, and those of the operations on files; unknown ones are refused, `null` means the default.

A model reads the field descriptions in every session, so they say what to send in as few words as that takes.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from orchestrator.core.globs import MOST_CHARACTERS
from orchestrator.core.paths import TAG_FORM, TAG_FORM_TEXT

MOST_ENTRIES = 100
"""Of a list of globs or names."""

MOST_GLOB_CHARACTERS = 10_000
"""Of all globs of a list together: what matching a path with them costs grows with it."""

MOST_CHANGES = 1000
"""Of one edit_file."""

CHANGE_FORMS = "Send {search, replace}, {start, end, expect, replace} or {symbol, content}."
"""For the hint of a refused change."""

PATTERN_CHARACTERS = 10_000
PATH_CHARACTERS = 16_384
"""Room for the longest path with the workspace's root before it; the name rule judges it."""

CONTENT_CHARACTERS = 16 * 1024 * 1024
"""As much as a frame can carry."""

FAR = 2**31 - 1
"""Bounds of numbers from here on only keep them small enough to store."""

OPERATOR_ONLY = "x-operator-only"
"""Marks a parameter, in its schema, that people send on the socket and no tool offers to a model."""

JOURNALLED = "journalled"
"""Marks, in a parameter's `Meta.extra`, a text that the journal keeps of a call: `GIVEN`, as it is (where, which and
how), or `POSITION`, where it names a version or a time. Of a text without a mark it keeps the length alone."""

FORM = "form"
"""In the same place: what a text with a pattern looks like, in words."""

GIVEN, POSITION = {JOURNALLED: "given"}, {JOURNALLED: "position"}

Version = Annotated[str, Meta(max_length=100, extra=POSITION)] | Annotated[int, Meta(le=2**63 - 1)]
Count = Annotated[int, Meta(ge=1, le=FAR)]
AnyPath = Annotated[str, Meta(max_length=PATH_CHARACTERS, extra=GIVEN)]
Name = Annotated[str, Meta(max_length=500, extra=GIVEN)]
Content = Annotated[str, Meta(max_length=CONTENT_CHARACTERS)]
PathText = Annotated[AnyPath, Meta(description="Relative path, e.g. 'src/app.py'.")]
DirectoryText = Annotated[AnyPath, Meta(description="Directory; '.' is the workspace.")]
GlobText = Annotated[str, Meta(max_length=MOST_CHARACTERS, extra=GIVEN)]
Tag = Annotated[str, Meta(pattern=TAG_FORM, extra={**GIVEN, FORM: TAG_FORM_TEXT})]
Globs = Annotated[
    tuple[GlobText, ...],
    Meta(description="gitignore-style, also '*.{py,ts}'; '!x' excepts.", max_length=MOST_ENTRIES),
]
BaseText = Annotated[
    Version | None,
    Meta(
        description="Version to change, '@N' or 'sha256:…'; default: newest you saw. "
        "Subagents on one connection must send it."
    ),
]
Preview = Annotated[bool, Meta(description="Only show the outcome.")]
Reason = Annotated[str, Meta(description="Why, in short.", max_length=2000)]
RequestId = Annotated[
    Annotated[str, Meta(min_length=1, max_length=200)] | None,
    Meta(description="Your own id; repeats apply once."),
]
Supersedes = Annotated[Version | None, Meta(description="'@N' of your conflict that this replaces.")]
Start = Annotated[Count, Meta(description="First line, 1-based.")]
Line = Annotated[int, Meta(ge=-FAR, le=FAR)]
FromLine = Annotated[Line, Meta(description="First line, 1-based; -100: the last 100.")]
Limit = Annotated[int, Meta(description="Most entries.", ge=1, le=5000)]
Tokens = Annotated[int, Meta(description="Token budget.", ge=50, le=200_000)]
Numbered = Annotated[bool, Meta(description="Number the lines.")]
Delta = Annotated[bool | None, Meta(description="true: only what differs from what you saw.")]
Beside = Annotated[int, Meta(description="Further lines before and after.", ge=0, le=500)]
Skip = Annotated[int, Meta(description="As `next` of the last answer says.", ge=0, le=FAR)]
CursorText = Annotated[str, Meta(max_length=PATH_CHARACTERS)]
Cursor = Annotated[CursorText | None, Meta(description="From the last answer.")]
ApproverCode = Annotated[
    Annotated[str, Meta(max_length=500)] | None,
    Meta(description="The approver code.", extra_json_schema={OPERATOR_ONLY: True}),
]


MOMENT = "'@N', '@start' or ISO 8601 (no zone: UTC)"


class Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all parameter sets; by itself, that of an operation without parameters."""


class ListFiles(Params, frozen=True):
    path: DirectoryText = "."
    globs: Globs = ()
    recursive: Annotated[bool, Meta(description="Also below.")] = False
    max_depth: Annotated[Count | None, Meta(description="With recursive: levels down.")] = None
    include_hidden: Annotated[bool, Meta(description="Also dot files.")] = False
    limit: Limit = 200
    cursor: Cursor = None


class FindFiles(Params, frozen=True):
    glob: Annotated[GlobText, Meta(description="gitignore-style, e.g. 'src/**/test_*.py'.", min_length=1)]
    path: DirectoryText = "."
    recursive: Annotated[bool, Meta(description="Also below.")] = True
    tag: Annotated[GlobText | None, Meta(description="With this tag.")] = None
    limit: Limit = 200
    cursor: Cursor = None


class FileInfo(Params, frozen=True):
    path: PathText


Edits = Annotated[int, Meta(ge=0, le=5)]
SearchMode = Literal["exact", "regex", "fuzzy", "semantic"]


class SearchContent(Params, frozen=True):
    pattern: Annotated[
        str,
        Meta(
            description="Text within a line; see mode.",
            min_length=1,
            max_length=PATTERN_CHARACTERS,
        ),
    ]
    path: Annotated[AnyPath, Meta(description="File or directory; '.' is everything.")] = "."
    globs: Annotated[Globs, Meta(description="Below `path`: gitignore-style, also '*.{py,ts}'; '!x' excepts.")] = ()
    mode: Annotated[SearchMode, Meta(description="regex: RE2's; fuzzy: with typos; semantic: by meaning.")] = "exact"
    max_edits: Annotated[Edits | None, Meta(description="fuzzy: most typos; default 2.")] = None
    multiline: Annotated[bool, Meta(description="regex: also across lines; matches on a line are one hit.")] = False
    case_sensitive: Annotated[bool, Meta(description="false: 'a' finds 'A'.")] = True
    smart_case: Annotated[bool, Meta(description="Case counts only if `pattern` has a capital.")] = False
    word: Annotated[bool, Meta(description="Only whole words.")] = False
    invert: Annotated[bool, Meta(description="Lines without it.")] = False
    count_only: Annotated[bool, Meta(description="Only how many lines match.")] = False
    files_only: Annotated[bool, Meta(description="Only files, and how many lines of each.")] = False
    context_lines: Annotated[int, Meta(description="Lines around each hit.", ge=0, le=50)] = 2
    max_results: Annotated[int, Meta(description="Most hits.", ge=1, le=1000)] = 20
    max_per_file: Annotated[Count | None, Meta(description="Most hits of one file.")] = None
    semantic_context: Annotated[bool, Meta(description="Also name the symbol around each hit.")] = False
    at: Annotated[Version | None, Meta(description="'@N': the files as they were.")] = None
    cursor: Cursor = None


class ReadFile(Params, frozen=True):
    path: PathText
    start: FromLine = 1
    end: Annotated[Line | None, Meta(description="Last line, included; default: as far as max_tokens allows.")] = None
    column: Annotated[Count | None, Meta(description="Only line `start`, from this character on.")] = None
    max_tokens: Tokens = 8000
    line_numbers: Numbered = True
    at: Annotated[Version | None, Meta(description="An earlier version, '@N'.")] = None
    delta: Delta = None


class ReadLines(Params, frozen=True):
    path: PathText
    start: FromLine = 1
    end: Annotated[Line | None, Meta(description="Last line, included; default start + 199.")] = None
    context: Beside = 0
    line_numbers: Numbered = True
    at: Annotated[Version | None, Meta(description="An earlier version, '@N'.")] = None


class Replacement(Params, frozen=True, omit_defaults=True):
    """A change, in one of three forms: {search, replace}, lines by number {start, end, expect, replace}, or a
    symbol's new content {symbol, content}."""

    search: Annotated[
        Content | None, Meta(description="Present text, copied exactly from a read; '' for an empty file.")
    ] = None
    replace: Annotated[Content | None, Meta(description="New text; '' removes.")] = None
    expected_count: Annotated[Count, Meta(description="How often `search` occurs; all are replaced.")] = 1
    fuzzy: Annotated[
        bool | None,
        Meta(description="Allow other typography or indentation in `search`; default: policy."),
    ] = None
    start: Annotated[Count | None, Meta(description="First line to replace, 1-based.")] = None
    end: Annotated[Count | None, Meta(description="Last line, included.")] = None
    expect: Annotated[Content | None, Meta(description="Required with start and end: what these lines hold now.")] = (
        None
    )
    symbol: Annotated[
        Annotated[str, Meta(min_length=1, max_length=500)] | None,
        Meta(description="Function, class, key or heading, e.g. 'Class.method'."),
    ] = None
    content: Annotated[
        Content | None,
        Meta(description="The symbol's whole new text, with decorators and comments above; '' removes."),
    ] = None


class ChangeParams(Params, frozen=True, kw_only=True):
    """What every change can carry."""

    preview: Preview = False
    reason: Reason = ""
    request_id: RequestId = None


class EditFile(ChangeParams, frozen=True):
    path: PathText
    changes: Annotated[
        tuple[Replacement, ...],
        Meta(
            description="All or none. Each is {search, replace}, {start, end, expect, replace} for lines by number, or "
            "{symbol, content}.",
            min_length=1,
            max_length=MOST_CHANGES,
        ),
    ]
    base: BaseText = None
    supersedes: Supersedes = None


class ApplyPatch(ChangeParams, frozen=True):
    patch: Annotated[
        Content,
        Meta(
            description="A unified diff ('--- a/x', '+++ b/x', '@@ …'), a '*** Begin Patch', blocks of "
            "'<<<<<<< SEARCH', '=======', '>>>>>>> REPLACE' below the file's name, or a whole file in a ``` fence "
            "below its path. Copy context exactly, leave nothing out.",
            min_length=1,
        ),
    ]
    path: Annotated[AnyPath | None, Meta(description="The file, if the patch names none.")] = None
    base: BaseText = None
    supersedes: Supersedes = None


class WriteFile(ChangeParams, frozen=True):
    path: PathText
    content: Annotated[Content, Meta(description="The whole new text, or what to append.")]
    mode: Annotated[
        Literal["truncate", "append", "create"],
        Meta(description="truncate: replace all (read it whole first); create: only if absent."),
    ]
    base: BaseText = None
    supersedes: Supersedes = None


class MoveFile(ChangeParams, frozen=True):
    source: PathText
    destination: Annotated[AnyPath, Meta(description="New path; must not exist.")]
    base: BaseText = None


class DeleteFile(ChangeParams, frozen=True):
    path: PathText
    base: BaseText = None


class CreateDirectory(ChangeParams, frozen=True):
    path: PathText


class FileHistory(Params, frozen=True):
    path: PathText
    limit: Annotated[int, Meta(description="Most versions.", ge=1, le=500)] = 20
    cursor: Cursor = None


class GetDiff(Params, frozen=True):
    path: Annotated[AnyPath | None, Meta(description="Default: all files that differ.")] = None
    from_: Annotated[
        Version,
        Meta(description="'@N', '@previous' or 'working'. Without path, '@previous' is when this session began."),
    ] = msgspec.field(default="@previous", name="from")
    to: Annotated[Version, Meta(description="'@N', 'current' or 'working' (the disk).")] = "current"
    context_lines: Annotated[int, Meta(description="Lines around each change.", ge=0, le=1000)] = 3
    max_tokens: Annotated[
        Annotated[int, Meta(ge=50, le=2_000_000)] | None,
        Meta(description="Token budget; default 20000, of long lines then the part that differs."),
    ] = None
    cursor: Annotated[CursorText | None, Meta(description="Without path: from the last answer.")] = None


class Revert(ChangeParams, frozen=True):
    change: Annotated[Version, Meta(description="'@N' of a change or of an external change.")]


class AwaitChange(Params, frozen=True):
    id: Annotated[Version, Meta(description="'@N' of an approval, conflict or change.")]
    timeout_s: Annotated[float, Meta(description="Seconds to wait.", ge=0, le=50)] = 25.0


# --- people's -----------------------------------------------------------------------------


class Approving(Params, frozen=True, kw_only=True):
    """The base of what needs the approver code; by itself, that of an operation that needs nothing else."""

    approver: ApproverCode = None
