"""What can go wrong, by who must act.

    OrchestratorError
    ├── CallerError      the agent: send something else
    ├── ApproverError    a person with the approver code
    ├── OperatorError    whoever runs the daemon
    └── InternalError    us

Each class has a stable `code`; `hint` is the next step. `details` holds positions, scores
and versions, never file content; `shown` is content for the answer's second text block, and
`shown_lines` says which lines of the current version that is (1-based, ends included).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from orchestrator.core.characters import shows


class OrchestratorError(Exception):
    """The root: a message with the values, a stable code, and what to do next."""

    code: ClassVar[str] = "internal"
    hint: str = ""
    journalled = False  # whether the refusal is in the journal already

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        details: Mapping[str, Any] | None = None,
        shown: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        if hint is not None:
            self.hint = hint
        self.details: dict[str, Any] = dict(details or {})
        self.shown = shown
        self.shown_lines: tuple[tuple[int, int], ...] = ()
        self.notices: tuple[Any, ...] = ()  # what the answer tells besides: results' Notice

    def __reduce__(self) -> tuple[object, ...]:
        """So that a copy can be made of it in another process, whatever its class is made from."""
        return _copied, (type(self), self.args, self.__dict__)


def _copied(kind: type[OrchestratorError], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> OrchestratorError:
    copy = kind.__new__(kind)
    copy.args = arguments
    copy.__dict__.update(attributes)
    return copy


class CallerError(OrchestratorError):
    """The caller can mend it with another call."""


class ApproverError(OrchestratorError):
    """A person with the approver code must act."""


class OperatorError(OrchestratorError):
    """Whoever runs the daemon must act."""


class InternalError(OrchestratorError):
    """A defect of ours; the log has the trace."""


# --- the call itself -------------------------------------------------------------------


class UnknownOperation(CallerError):
    """No operation has this name."""

    code = "unknown_operation"
    hint = "tools/list names all of them."


class NotAvailable(CallerError):
    """The contract names it, this version does not have it yet."""

    code = "not_available"
    hint = "Use the operations that tools/list names."


class ParameterUnknown(CallerError):
    """A parameter that the operation does not have."""

    code = "unknown_parameter"
    hint = "Send only the parameters of its schema."


class ParameterInvalid(CallerError):
    """A parameter of the wrong type or outside its range."""

    code = "invalid_parameter"
    hint = "Correct this parameter and send the call again."

    def __init__(self, parameter: str, why: str, *, hint: str | None = None) -> None:
        super().__init__(f"{parameter}: {why}", hint=hint, details={"parameter": parameter})


class FrameInvalid(CallerError):
    """A line on the socket that is not one JSON-RPC message."""

    code = "invalid_frame"
    hint = "Send one JSON object a line."


class FrameTooLarge(CallerError):
    """A line on the socket over the limit; `request_id` is of the call in it, if that could be made out."""

    code = "frame_too_large"
    request_id: int | str | None = None
    hint = "Send less in one call."


class AnswerTooLarge(CallerError):
    """The answer does not fit one line on the socket; a change that was to be made is made."""

    code = "answer_too_large"
    hint = (
        "Ask for less: a smaller limit or max_tokens, fewer lines, one path. If it was to change something, that is "
        "done: session_status tells."
    )

    def __init__(self, operation: str, *, size: int, most: int) -> None:
        super().__init__(
            f"the answer to {escaped(operation)[:100]} has {size} bytes, and {most} fit",
            details={"bytes": size, "most": most},
        )


class RequestIdReused(CallerError):
    """The request id was used before, with other parameters."""

    code = "request_id_reused"
    hint = "Use a new request_id for a new request."


class Aborted(CallerError):
    """The change was cut off by a crash before it took effect."""

    code = "aborted"
    hint = "Nothing was changed. Send the same call again; the same request_id is safe."


# --- who is calling --------------------------------------------------------------------


class Unauthorised(CallerError):
    """The token is wrong or revoked, or the name needs one."""

    code = "unauthorised"
    hint = "`orchestrator agent add NAME` prints a token."


class SessionNotYours(CallerError):
    """A session is resumed by its own agent only."""

    code = "session_not_yours"
    hint = "Leave the session out (or unset ORCHESTRATOR_SESSION) to begin a new one."


class SessionUnknown(CallerError):
    """No session has this id."""

    code = "session_unknown"
    hint = "Leave the session out (or unset ORCHESTRATOR_SESSION) to begin a new one."


class NotPermitted(CallerError):
    """The operation is for people, reviewers or approvers."""

    code = "not_permitted"
    hint = "Ask the person you work for."


class ApproverCodeNeeded(ApproverError):
    """The act needs the approver code, and none or a wrong one was given."""

    code = "approver_code_needed"
    hint = "Run it in a terminal, or set ORCHESTRATOR_APPROVER, with the code that `orchestrator up` showed once."


# --- paths -----------------------------------------------------------------------------


class PathError(CallerError):
    """The root of what can be wrong with a path as it is written."""

    def __init__(self, path: str, why: str, *, hint: str | None = None) -> None:
        super().__init__(f"{escaped(path)}: {why}", hint=hint, details={"path": escaped(path)})


class PathInvalid(PathError):
    """Empty, not Unicode, or with characters that a name may not have."""

    code = "path_invalid"
    hint = "Name a file as the listings show it, relative to the workspace."


class PathTooLong(PathError):
    """A component over 255 bytes, or a path over the limit."""

    code = "path_too_long"
    hint = "Use a shorter name."


class PathNotCanonical(PathError):
    """`..`, an empty component, or a spelling that is not NFC."""

    code = "path_not_canonical"
    hint = "Paths are relative to the workspace and never contain '..'."


class PathAbsolute(PathError):
    """An absolute path outside the workspace's root."""

    code = "path_absolute"
    hint = "Paths are relative to the workspace."


class FileNotFound(PathError):
    """Nothing has this name."""

    code = "not_found"
    hint = "list_files or find_files shows what is there."


class FileExists(PathError):
    """Something has this name already."""

    code = "already_exists"
    hint = "Use another name, or change what is there."


class NotAFile(PathError):
    """A directory where a file is needed."""

    code = "not_a_file"
    hint = "Use list_files for directories."


class NotADirectory(PathError):
    """A file where a directory is needed."""

    code = "not_a_directory"
    hint = "list_files shows what is there."


class NotARegularFile(PathError):
    """A FIFO, socket or device."""

    code = "not_a_regular_file"
    hint = "Only regular files are read and changed."


class SymlinkRefused(PathError):
    """The path, or a directory in it, is a symbolic link."""

    code = "symlink_refused"
    hint = "Links are not followed; use the path of the file itself."


class CrossDevice(PathError):
    """The path leads into another file system."""

    code = "cross_device"
    hint = "Other file systems are not part of the workspace."


class OutsideWorkspace(PathError):
    """The kernel says that the path leaves the workspace."""

    code = "outside_workspace"
    hint = "Only what lies in the workspace is read and changed."


class ChangedWhileRead(PathError):
    """The file moved under the read more often than it was tried."""

    code = "changed_while_read"
    hint = "Try again."


class FileBusy(PathError):
    """Another process holds the file open for writing."""

    code = "file_busy"
    hint = "Try again when the other program has closed the file."


class FileTooLarge(PathError):
    """Over the size limit of this version."""

    code = "too_large"
    hint = "file_info tells its size; it is not read or changed in this version."


class BinaryFile(PathError):
    """Not text."""

    code = "binary_file"
    hint = "file_info tells its size and kind."


class AccessRefused(PathError):
    """The operating system refuses the daemon this file."""

    code = "access_refused"
    hint = "The daemon's user needs the right to it; ask the person you work for."


class IoFailed(PathError):
    """The disk failed at this file; what stands there is what stood there."""

    code = "io_error"
    hint = "Send the call again with the same request_id; if that does not help, tell the person you work for."


class CharacterNotEncodable(PathError):
    """The file's encoding cannot hold a character of the new text."""

    code = "not_encodable"
    hint = "Use characters that the file's encoding has; file_info names it."


# --- policy ----------------------------------------------------------------------------


class Denied(CallerError):
    """Policy says no."""

    code = "denied"
    hint = "Policy decides this; a person can change it. Do not try to get around it."


class PathReserved(CallerError):
    """Another agent reserved the path, and policy does not let anybody else in meanwhile."""

    code = "path_reserved"
    hint = "Go on with other work, and send the call again when the lease has ended."


class ApprovalRequired(CallerError):
    """Policy lets a person decide, and the read waits for that."""

    code = "approval_required"
    hint = "Go on with other work, and call again when it is granted."


# --- versions and patches --------------------------------------------------------------


class VersionNotKept(CallerError):
    """The content at this version is not in the journal."""

    code = "version_not_kept"
    hint = "file_history shows which versions are kept."


class CheckpointInvalid(CallerError):
    """What was given as a checkpoint is none."""

    code = "checkpoint_invalid"
    hint = "`orchestrator journal checkpoint --out FILE` makes one."


class CheckpointOfAnotherJournal(CallerError):
    """The checkpoint is of another journal."""

    code = "checkpoint_of_another_journal"
    hint = "Name the workspace that it was made of, with --workspace or --state-dir."


class GitNoteFailed(CallerError):
    """The checkpoint is signed, and could not be attached to a commit."""

    code = "git_note_failed"
    hint = "Commit first and try again, or write it to a file: --out FILE."


class NotRedactable(CallerError):
    """Nothing of this event, or this content, can be taken out."""

    code = "not_redactable"


class VersionUnknown(CallerError):
    """The journal has no such event, or it is not of the kind asked for."""

    code = "version_unknown"
    hint = "file_history lists a file's versions, session_status what is pending."


class TextTooCostly(CallerError):
    """Working on a text took longer, or more memory, than one call may have. Nothing was changed."""

    code = "text_too_costly"
    hint = (
        "Quote exact lines, change fewer of them at once, read the file again so that nothing has to be merged, or "
        "ask for a smaller part."
    )

    def __init__(self, limit_s: float) -> None:
        super().__init__(
            f"comparing or searching the text took over {limit_s:g} s, or more memory than one call may have; "
            "nothing was changed",
            details={"limit_s": limit_s},
        )


class StaleBase(CallerError):
    """The named base is not a content that this path ever had."""

    code = "stale_base"
    hint = "Read the file and send the version_id of that answer as base."


class BaseRequired(CallerError):
    """The whole file would be replaced, and this session has not seen it whole."""

    code = "base_required"
    hint = "Read the whole file first (read_file), or name the version that you mean as base; then send it again."


class SearchNotFound(CallerError):
    """The search text, or a hunk of the patch, stands nowhere."""

    code = "search_not_found"
    hint = "Copy the lines exactly from a fresh read; the nearest places are shown."
    differences: tuple[str, ...] = ()  # at each of `nearest`; they quote the file, so they go where its lines go

    def __init__(self, message: str, *, hint: str | None = None, details: Mapping[str, Any] | None = None) -> None:
        if hint is None and details is not None and not details.get("nearest") and self.hint == SearchNotFound.hint:
            hint = "Copy the lines exactly from a fresh read; nothing in the file is like them."
        super().__init__(message, hint=hint, details=details)


class ExpectMismatch(SearchNotFound):
    """Other lines stand there than those that are expected."""

    code = "expect_mismatch"
    hint = "Look at the lines that are shown, then send start, end and expect as they stand there."


class SearchAmbiguous(CallerError):
    """The search text stands in more than one place."""

    code = "search_ambiguous"
    hint = "Add a neighbouring line to it, or set expected_count."


class SymbolNotFound(SearchNotFound):
    """The file defines nothing of that name."""

    code = "symbol_not_found"
    hint = "Take one of the nearest names, in full ('Class.method'), or send {search, replace}."


class SymbolAmbiguous(SearchAmbiguous):
    """The file defines that name more than once."""

    code = "symbol_ambiguous"
    hint = "Name it in full ('Class.method'); if that is one name several times, send {search, replace}."


class SymbolExists(CallerError):
    """A symbol's new content defines another name, which the file has already beside it."""

    code = "symbol_exists"
    hint = "Send only the lines of that symbol, under a name that is free; change the other by a change of its own."


class ChangesOverlap(CallerError):
    """Two changes of one batch touch the same lines."""

    code = "changes_overlap"
    hint = "Join the overlapping changes into one."


class NothingToChange(CallerError):
    """The change leaves the file as it is."""

    code = "nothing_to_change"
    hint = "The file holds this already."


class PatchInvalid(CallerError):
    """The patch cannot be read in any of its forms."""

    code = "patch_invalid"
    hint = "Send a unified diff ('--- a/x', '+++ b/x', '@@ …'), or use edit_file."


class PatchAmbiguous(CallerError):
    """The patch can be read in more than one way."""

    code = "patch_ambiguous"
    hint = "Send one form only, with nothing around it: a unified diff, or '*** Begin Patch', or search/replace blocks."


class ChangesConflict(CallerError):
    """Some files of a change of several have changed where it wants to go; none was changed."""

    code = "changes_conflict"
    hint = "Read the current lines, and send the patch again; or send the other files' patches without these."


class RevertImpossible(CallerError):
    """The change has nothing left to revert, or its contents were not kept."""

    code = "revert_impossible"
    hint = "file_history shows what can be undone."


# --- the workspace and the daemon ------------------------------------------------------


class WorkspaceNested(OperatorError):
    """A daemon runs on a workspace inside or around this one."""

    code = "workspace_nested"


class WorkspaceHeld(OperatorError):
    """Another daemon serves this workspace."""

    code = "workspace_held"


class DaemonUnreachable(OperatorError):
    """No daemon answers on the socket."""

    code = "daemon_unreachable"
    hint = "Start it with `orchestrator up`."


class DaemonStopped(OperatorError):
    """A person stopped the daemon: a running transport refuses each call; a new `orchestrator mcp` starts it again."""

    code = "daemon_stopped"
    hint = (
        "Ask the person you work for to run `orchestrator up`, or to start the agent anew; until then no file can be "
        "read or changed."
    )


class DaemonRestarted(CallerError):
    """The daemon ended twice while the call was open, or came back without the session that made it."""

    code = "daemon_restarted"
    hint = "Send the same call again with the same request_id."


class WritesStopped(OperatorError):
    """The disk refused a sync or is full; nothing is written until that is mended."""

    code = "writes_stopped"
    hint = "Repair the disk, then restart the daemon."


class SigningKeyUnusable(OperatorError):
    """The journal's key can't be read or made, so no checkpoint can be signed."""

    code = "signing_key_unusable"


class DescriptorsExhausted(OperatorError):
    """The daemon, or the whole system, has no file descriptor left; nothing was changed."""

    code = "descriptors_exhausted"
    hint = "Close some clients, or raise the limit of open files (`ulimit -n`) where the daemon is started; try again."


class StateDirectoryUnusable(OperatorError):
    """The state directory can't be read or written as the daemon needs it; nothing was changed in it."""

    code = "state_directory_unusable"
    hint = "Give the state directory back to its owner, writable, on a file system that takes writes; then try again."


class DiskFull(OperatorError):
    """No space left for the change; nothing was changed."""

    code = "disk_full"
    hint = "Free some space, then send the change again."


class JournalCorrupt(OperatorError):
    """The journal does not hold what it should."""

    code = "journal_corrupt"


class JournalTooNew(OperatorError):
    """The journal was written by a newer program."""

    code = "journal_too_new"


class JournalBehind(OperatorError):
    """The files are ahead of the journal, as after a restored backup."""

    code = "journal_behind"


class PolicyInvalid(OperatorError):
    """The policy file cannot be used."""

    code = "policy_invalid"


def plural(count: int, noun: str) -> str:
    """A count and its noun: "1 file", "3 files", "2 entries"."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{count} {noun[:-1]}ies"
    return f"{count} {noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def escaped(text: str) -> str:
    """A text from outside with every control, format, blank-looking and lone surrogate character made visible."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if shows(c) else c.encode("unicode_escape", "backslashreplace").decode("ascii") for c in text)


def shown_lines(lines: Sequence[int], most: int = 20) -> str:
    """Line numbers for a message: `3, 17, 40 …`."""
    text = ", ".join(str(line) for line in lines[:most])
    return f"{text} …" if len(lines) > most else text
