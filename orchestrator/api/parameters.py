"""The parameters of every operation; unknown ones are refused, `null` means the default.

Field descriptions are what a model reads in the tool's schema, so they say what to send.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from orchestrator.core.events.outcomes import Outcome, described
from orchestrator.core.glob_pattern import MOST_CHARACTERS

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

Version = Annotated[str, Meta(max_length=100)] | Annotated[int, Meta(le=2**63 - 1)]
Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
AnyPath = Annotated[str, Meta(max_length=PATH_CHARACTERS)]
Name = Annotated[str, Meta(max_length=500)]
Content = Annotated[str, Meta(max_length=CONTENT_CHARACTERS)]
PathText = Annotated[AnyPath, Meta(description="Path relative to the workspace, '/'-separated, e.g. 'src/app.py'.")]
DirectoryText = Annotated[AnyPath, Meta(description="Directory relative to the workspace; '.' is its root.")]
GlobText = Annotated[str, Meta(max_length=MOST_CHARACTERS)]
Globs = Annotated[
    tuple[GlobText, ...],
    Meta(description="gitignore-style patterns; '*.py' matches at any depth, '!x' excepts.", max_length=MOST_ENTRIES),
]
BaseText = Annotated[
    Version | None,
    Meta(
        description="The version ('@N' from an earlier answer) or 'sha256:…' that this change was made against. "
        "Without it: the newest version that this session has seen. Subagents that share one connection must send it."
    ),
]
Preview = Annotated[bool, Meta(description="Only show what would happen: the diff and the status it would get.")]
Reason = Annotated[str, Meta(description="Why, in a few words, for the people who read the history.", max_length=2000)]
RequestId = Annotated[
    Annotated[str, Meta(min_length=1, max_length=200)] | None,
    Meta(description="Your own id of this request: sending the same call with it again never applies it twice."),
]
Supersedes = Annotated[Version | None, Meta(description="'@N' of an open conflict of yours that this change replaces.")]
Start = Annotated[Count, Meta(description="First line, 1-based.")]
Limit = Annotated[int, Meta(description="Most entries in one answer.", ge=1, le=5000)]
Cursor = Annotated[AnyPath | None, Meta(description="`cursor` of the last answer, to go on from there.")]


MOMENT = "'@N', or a time in ISO 8601 such as '2026-11-21T09:30:00+01:00' (no zone: UTC)."


class Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all parameter sets."""


class ListFiles(Params, frozen=True, kw_only=True):
    path: DirectoryText = "."
    globs: Globs = ()
    recursive: Annotated[bool, Meta(description="Also what is in the directories below.")] = False
    max_depth: Annotated[Count | None, Meta(description="With recursive: levels down; 1 is one directory.")] = None
    include_hidden: Annotated[bool, Meta(description="Also names that begin with a dot.")] = False
    limit: Limit = 200
    cursor: Cursor = None


class FindFiles(Params, frozen=True, kw_only=True):
    glob: Annotated[
        GlobText, Meta(description="gitignore-style pattern, e.g. '*.py', 'src/**/test_*.py'.", min_length=1)
    ]
    path: DirectoryText = "."
    recursive: Annotated[bool, Meta(description="Also what is in the directories below.")] = True
    limit: Limit = 200
    cursor: Cursor = None


class FileInfo(Params, frozen=True, kw_only=True):
    path: PathText


class SearchContent(Params, frozen=True, kw_only=True):
    pattern: Annotated[
        str,
        Meta(
            description="Text to find, exactly as it stands; may not span lines.",
            min_length=1,
            max_length=PATTERN_CHARACTERS,
        ),
    ]
    path: Annotated[AnyPath, Meta(description="A file, or a directory to search below; '.' is everything.")] = "."
    globs: Globs = ()
    mode: Annotated[Literal["exact"], Meta(description="How to match.")] = "exact"
    case_sensitive: Annotated[bool, Meta(description="false: 'a' finds 'A'.")] = True
    word: Annotated[bool, Meta(description="Only whole words.")] = False
    invert: Annotated[bool, Meta(description="Lines that do not match.")] = False
    count_only: Annotated[bool, Meta(description="Only the number of matching lines.")] = False
    context_lines: Annotated[int, Meta(description="Lines shown before and after each hit.", ge=0, le=50)] = 2
    max_results: Annotated[int, Meta(description="Most hits in one answer.", ge=1, le=1000)] = 20
    cursor: Cursor = None


class ReadFile(Params, frozen=True, kw_only=True):
    path: PathText
    start: Start = 1
    end: Annotated[Count | None, Meta(description="Last line, included; without it as far as max_tokens allows.")] = (
        None
    )
    max_tokens: Annotated[int, Meta(description="Budget of the answer, estimated.", ge=50, le=200_000)] = 8000
    line_numbers: Annotated[bool, Meta(description="Number the lines.")] = True
    at: Annotated[Version | None, Meta(description="An earlier state, '@N'.")] = None


class ReadLines(Params, frozen=True, kw_only=True):
    path: PathText
    start: Start = 1
    end: Annotated[Count | None, Meta(description="Last line, included; default start + 199.")] = None
    context: Annotated[int, Meta(description="Further lines before and after.", ge=0, le=500)] = 0
    line_numbers: Annotated[bool, Meta(description="Number the lines.")] = True
    at: Annotated[Version | None, Meta(description="An earlier state, '@N'.")] = None


class Replacement(Params, frozen=True, kw_only=True, omit_defaults=True):
    """A change, in one of three forms: {search, replace}, lines by number {start, end, expect, replace}, or a
    symbol's new content {symbol, content}."""

    search: Annotated[
        Content | None, Meta(description="The present text, copied exactly from a read; '' for an empty file.")
    ] = None
    replace: Annotated[Content | None, Meta(description="The new text; '' removes the passage.")] = None
    expected_count: Annotated[Count, Meta(description="How often `search` must stand; all are replaced.")] = 1
    fuzzy: Annotated[
        bool | None,
        Meta(
            description="true: `search` may have other typography or indentation than the file; false: refuse. "
            "Without it the policy says."
        ),
    ] = None
    start: Annotated[Count | None, Meta(description="Instead of `search`: the first line to replace, 1-based.")] = None
    end: Annotated[Count | None, Meta(description="With `start`: the last line, included.")] = None
    expect: Annotated[
        Content | None, Meta(description="With `start`: the text that these lines hold; refused if they hold another.")
    ] = None
    symbol: Annotated[
        Annotated[str, Meta(min_length=1, max_length=500)] | None,
        Meta(description="Instead of `search`: a function, class, key or heading to replace, e.g. 'Class.method'."),
    ] = None
    content: Annotated[
        Content | None,
        Meta(
            description="With `symbol`: all of its new text, with its decorators and the comments right above; "
            "indentation is fitted to its place; '' removes it."
        ),
    ] = None


class ChangeParams(Params, frozen=True, kw_only=True):
    """What every change can carry."""

    preview: Preview = False
    reason: Reason = ""
    request_id: RequestId = None


class EditFile(ChangeParams, frozen=True, kw_only=True):
    path: PathText
    changes: Annotated[
        tuple[Replacement, ...],
        Meta(description="Applied together or not at all.", min_length=1, max_length=MOST_CHANGES),
    ]
    base: BaseText = None
    supersedes: Supersedes = None


class ApplyPatch(ChangeParams, frozen=True, kw_only=True):
    patch: Annotated[
        Content,
        Meta(
            description="A unified diff ('--- a/x', '+++ b/x', '@@ …'), a '*** Begin Patch', or blocks of "
            "'<<<<<<< SEARCH', '=======', '>>>>>>> REPLACE' below the file's name, or the whole file in a fence (```) "
            "below its path. Copy the context exactly, leave nothing out; at most 1,000 files, 100,000 rows, 4 MiB.",
            min_length=1,
        ),
    ]
    path: Annotated[AnyPath | None, Meta(description="The file, if the patch does not name it.")] = None
    base: BaseText = None
    supersedes: Supersedes = None


class WriteFile(ChangeParams, frozen=True, kw_only=True):
    path: PathText
    content: Annotated[Content, Meta(description="The whole new content, or what to append.")]
    mode: Annotated[
        Literal["truncate", "append", "create"],
        Meta(description="truncate: replace everything (the file must have been read whole); create: only if absent."),
    ]
    base: BaseText = None
    supersedes: Supersedes = None


class MoveFile(ChangeParams, frozen=True, kw_only=True):
    source: PathText
    destination: Annotated[AnyPath, Meta(description="The new path; must not exist.")]
    base: BaseText = None


class DeleteFile(ChangeParams, frozen=True, kw_only=True):
    path: PathText
    base: BaseText = None


class CreateDirectory(ChangeParams, frozen=True, kw_only=True):
    path: PathText


class FileHistory(Params, frozen=True, kw_only=True):
    path: PathText
    limit: Annotated[int, Meta(description="Most versions in one answer.", ge=1, le=500)] = 20
    cursor: Cursor = None


class GetDiff(Params, frozen=True, kw_only=True):
    path: Annotated[AnyPath | None, Meta(description="The file; without it all files that differ.")] = None
    from_: Annotated[
        Version,
        Meta(description="'@N', '@previous' or 'working'. Without path, '@previous' is when this session began."),
    ] = msgspec.field(default="@previous", name="from")
    to: Annotated[Version, Meta(description="'@N', 'current' or 'working' (the disk now).")] = "current"
    context_lines: Annotated[int, Meta(description="Unchanged lines around each change.", ge=0, le=1000)] = 3
    max_tokens: Annotated[
        Annotated[int, Meta(ge=50, le=2_000_000)] | None,
        Meta(description="Without path: budget of the answer, estimated; default 20000."),
    ] = None
    cursor: Annotated[AnyPath | None, Meta(description="Without path: `cursor` of the last answer, to go on.")] = None


class Revert(Params, frozen=True, kw_only=True):
    change: Annotated[Version, Meta(description="'@N' of any event of the change, or of an outside change.")]
    preview: Preview = False
    reason: Reason = ""
    request_id: RequestId = None


class SessionStatus(Params, frozen=True, kw_only=True):
    all_leases: Annotated[bool, Meta(description="Also leases on files that this session has not seen.")] = False
    cursor: Annotated[Name | None, Meta(description="Where to go on, as `next` of the last answer says.")] = None


class BeginTask(Params, frozen=True, kw_only=True):
    title: Annotated[str, Meta(description="What you set out to do.", min_length=1, max_length=500)]
    request_id: RequestId = None


class EndTask(Params, frozen=True, kw_only=True):
    task: Annotated[Version, Meta(description="'@N' of the task.")]
    outcome: Annotated[str, Meta(description="What came of it.", max_length=2000)] = ""
    request_id: RequestId = None


class ListConflicts(Params, frozen=True, kw_only=True):
    conflict: Annotated[Version | None, Meta(description="Only this one, '@N'.")] = None
    limit: Annotated[int, Meta(description="Most conflicts in one answer.", ge=1, le=100)] = 20
    cursor: Cursor = None
    max_tokens: Annotated[int, Meta(description="Budget of the answer, estimated.", ge=500, le=10_000_000)] = 20_000


class ResolveConflict(Params, frozen=True, kw_only=True):
    conflict: Annotated[Version, Meta(description="'@N' of the conflict.")]
    choice: Annotated[
        Literal["current", "proposed", "content", "regions", "review"],
        Meta(description="Which side stands; or `content`; or a side for each region; or the reviewer's proposal."),
    ]
    content: Annotated[
        Content | None,
        Meta(description="With choice 'content': the whole file, made from version `on`."),
    ] = None
    regions: Annotated[
        Annotated[tuple[Literal["current", "proposed"], ...], Meta(max_length=100_000)] | None,
        Meta(description="With choice 'regions': a side for each region that version `on` showed, in their order."),
    ] = None
    on: Annotated[
        Version | None,
        Meta(
            description="The version that you looked at: `current_version` of list_conflicts, '@0' where it is null. "
            "Required with 'content' and 'regions', and with 'proposed' where other lines clash now than when the "
            "conflict was found, or the whole file would be replaced. A content is carried onto newer changes; "
            "any other choice is refused (`conflict_moved`) if other lines clash by now."
        ),
    ] = None
    review: Annotated[
        Version | None,
        Meta(description="Required with choice 'review': '@N' of the review whose proposal you looked at."),
    ] = None
    reason: Reason = ""
    request_id: RequestId = None
    approver: Annotated[Name | None, Meta(description="The approver code.")] = None


class AwaitChange(Params, frozen=True, kw_only=True):
    id: Annotated[Version, Meta(description="'@N' of an approval, a conflict or a change.")]
    timeout_s: Annotated[float, Meta(description="How long to wait, in seconds.", ge=0, le=50)] = 25.0


class JournalFilter(Params, frozen=True, kw_only=True):
    """Which events; those that are left out let all through."""

    path: Annotated[
        AnyPath | None,
        Meta(description="Only events about this path: changes, reads, searches that showed it, refusals, approvals."),
    ] = None
    agent: Annotated[Name | None, Meta(description="Only this agent's.")] = None
    session: Annotated[Name | None, Meta(description="Only this session's.")] = None
    task: Annotated[
        Version | None,
        Meta(description="'@N' of a task: what its session did from its begin to its end, and what carries it."),
    ] = None
    kind: Annotated[Name | None, Meta(description="Only events of this kind, e.g. 'change_applied'.")] = None
    since: Annotated[Version | None, Meta(description=f"From this moment on: {MOMENT}")] = None
    until: Annotated[Version | None, Meta(description=f"Up to this moment, included: {MOMENT}")] = None
    outcome: Annotated[
        Outcome | None, Meta(description=f"Only events that say that it came out so. {described()}.")
    ] = None


class JournalQuery(JournalFilter, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(description="Most events in one answer.", ge=1, le=500)] = 50
    cursor: Cursor = None


# --- people's -----------------------------------------------------------------------------


class Status(Params, frozen=True, kw_only=True):
    pass


class Approving(Params, frozen=True, kw_only=True):
    """The base of what needs the approver code."""

    approver: Name | None = None


class ApprovalsList(Params, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(description="Most approvals in one answer.", ge=1, le=200)] = 50
    cursor: Cursor = None


class ApprovalsShow(Params, frozen=True, kw_only=True):
    approval: Version


class Approve(Approving, frozen=True, kw_only=True):
    approval: Version


class Deny(Approving, frozen=True, kw_only=True):
    approval: Version
    reason: Reason = ""


class AgentAdd(Approving, frozen=True, kw_only=True):
    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,63}$")]
    agent_class: Literal["cloud", "local", "review"] = msgspec.field(default="cloud", name="class")


class AgentRevoke(Approving, frozen=True, kw_only=True):
    name: Name


class AgentList(Params, frozen=True, kw_only=True):
    pass


class ApproverCreate(Params, frozen=True, kw_only=True):
    """Make the code, once; refused when there is one."""


class ApproverReset(Approving, frozen=True, kw_only=True):
    pass


class PolicyCheck(Params, frozen=True, kw_only=True):
    text: Content
    source: AnyPath = "policy.toml"


class PolicyReload(Approving, frozen=True, kw_only=True):
    pass


class JournalVerify(Params, frozen=True, kw_only=True):
    checkpoint: Annotated[Content | None, Meta(description="The text of a checkpoint file, to compare with.")] = None


class JournalRebuild(Params, frozen=True, kw_only=True):
    check: Literal[True] = True


class WorkspaceCheck(Params, frozen=True, kw_only=True):
    """Compare every tracked file on disk with the journal, after the background scan."""


class Stop(Params, frozen=True, kw_only=True):
    pass
