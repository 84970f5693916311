"""What can go wrong, by who must act.

    OrchestratorError
    ├── CallerError      the agent: send something else
    ├── ApproverError    a person with the approver code
    ├── OperatorError    whoever runs the daemon
    └── InternalError    us

Each class has a stable `code`; `hint` is the next step. `details` holds positions, scores
and versions, never file content; `shown` is content for the answer's second text block, and
`seen` says which lines of which version that is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.core.characters import shows

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take 2 ms of each hook
    from typing import Any, ClassVar

    from orchestrator.core.content import SeenLines
    from orchestrator.core.ids import WorkspacePath


class OrchestratorError(Exception):
    """The root: a message with the values, a stable code, and what to do next."""

    code: ClassVar[str] = "internal"
    hint: str = ""
    journalled = False  # whether the refusal is in the journal already

    def __init_subclass__(cls, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init_subclass__()
        cls.code = code or cls.code
        cls.hint = cls.hint if hint is None else hint

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
        self.seen: SeenLines | None = None
        self.quotes: WorkspacePath | None = None  # the file of which lines are to be `shown`
        self.notices: tuple[Any, ...] = ()  # further members of the answer: results' Notice

    def __reduce__(self) -> tuple[object, ...]:
        """So that a copy can be made of it in another process, whatever its class is made from."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


class CallerError(OrchestratorError):
    """The caller can mend it with another call."""


class ApproverError(OrchestratorError):
    """A person with the approver code must act."""


class OperatorError(OrchestratorError):
    """Whoever runs the daemon must act."""


class InternalError(OrchestratorError):
    """A defect of ours; the log has the trace."""


# --- the call itself -------------------------------------------------------------------


class UnknownOperation(CallerError, code="unknown_operation", hint="tools/list names all of them."):
    """No operation has this name."""


class NotAvailable(CallerError, code="not_available", hint="Use the operations that tools/list names."):
    """What is asked for is not offered here."""


class ParameterUnknown(CallerError, code="unknown_parameter", hint="Send only the parameters of its schema."):
    """A parameter that the operation does not have."""


class ParameterInvalid(CallerError, code="invalid_parameter", hint="Correct this parameter and send the call again."):
    """A parameter of the wrong type or outside its range."""

    def __init__(self, parameter: str, why: str, *, hint: str | None = None) -> None:
        super().__init__(f"{parameter}: {why}", hint=hint, details={"parameter": parameter})


class FrameInvalid(CallerError, code="invalid_frame", hint="Send one JSON object a line."):
    """A line on the socket that is not one JSON-RPC message."""

    request_id: int | str | None = None  # of the call in it, if that could be made out


class FrameTooLarge(FrameInvalid, code="frame_too_large", hint="Send less in one call."):
    """A line on the socket over the limit."""


class AnswerTooLarge(
    CallerError,
    code="answer_too_large",
    hint="Ask for less: a smaller limit or max_tokens, or one path. A write was applied: see session_status.",
):
    """The response exceeds the frame limit. If the call was a write, it has been applied."""

    def __init__(self, operation: str, *, size: int, most: int) -> None:
        super().__init__(
            f"the answer to {escaped(operation)[:100]} has {size} bytes, and {most} fit",
            details={"bytes": size, "most": most},
        )


class RequestStateInvalid(
    CallerError,
    code="request_state_invalid",
    hint="What waits is in the queue, where a person answers it; await_change('@N') follows it. Send a new call "
    "without requestState and inputResponses.",
):
    """The state that came back with a call is not what was given out for it."""


class RequestIdReused(CallerError, code="request_id_reused", hint="Use a new request_id for a new request."):
    """The request id was used before, with other parameters."""


class Aborted(
    CallerError, code="aborted", hint="Nothing was changed. Send the same call again; the same request_id is safe."
):
    """The change was cut off by a crash before it took effect."""


# --- who is calling --------------------------------------------------------------------


class Unauthorised(CallerError, code="unauthorised", hint="`orchestrator agent add NAME` prints a token."):
    """The token is wrong or revoked, or the name needs one."""


class HttpRefused(CallerError, code="http_refused", hint="`orchestrator status` names the URL for MCP over HTTP."):
    """A request over HTTP that is not for this server, or is not one."""

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class RateLimited(CallerError, code="rate_limited", hint="Wait, then send it again."):
    """Too many requests in too short a time."""

    def __init__(self, message: str, *, wait_s: float) -> None:
        super().__init__(f"{message}; the next is taken in {wait_s:.1f} s")
        self.wait_s = wait_s


class SessionUnknown(
    CallerError, code="session_unknown", hint="Leave the session out, or unset ORCHESTRATOR_SESSION, to begin one."
):
    """No session has this id."""


class SessionNotYours(SessionUnknown, code="session_not_yours"):
    """A session is resumed by its own agent only."""


class NotPermitted(CallerError, code="not_permitted", hint="Ask the person you work for."):
    """The operation is for people, reviewers or approvers."""


class ApproverCodeNeeded(
    ApproverError,
    code="approver_code_needed",
    hint="Run it in a terminal, or set ORCHESTRATOR_APPROVER to the code of the first `up` or of `approver reset`.",
):
    """The act needs the approver code, and none or a wrong one was given."""


# --- paths -----------------------------------------------------------------------------


class PathError(CallerError):
    """The root of what can be wrong with a path as it is written."""

    def __init__(self, path: str, why: str, *, hint: str | None = None) -> None:
        super().__init__(f"{escaped(path)}: {why}" if path else why, hint=hint, details={"path": escaped(path)})


class PathInvalid(
    PathError, code="path_invalid", hint="Name a file as the listings show it, relative to the workspace."
):
    """Empty, not Unicode, or with characters that a name may not have."""


class PathTooLong(PathError, code="path_too_long", hint="Use a shorter name."):
    """A component over 255 bytes, or a path over the limit."""


class PathNotCanonical(
    PathError, code="path_not_canonical", hint="Paths are relative to the workspace and never contain '..'."
):
    """`..`, an empty component, or a spelling that is not NFC."""


class PathAbsolute(PathError, code="path_absolute", hint="Paths are relative to the workspace."):
    """An absolute path outside the workspace's root."""


class FileNotFound(PathError, code="not_found", hint="list_files or find_files shows what is there."):
    """Nothing has this name."""


class FileExists(PathError, code="already_exists", hint="Use another name, or change what is there."):
    """Something has this name already."""


class NotAFile(PathError, code="not_a_file", hint="Use list_files for directories."):
    """A directory where a file is needed."""


class NotADirectory(PathError, code="not_a_directory", hint="list_files shows what is there."):
    """A file where a directory is needed."""


class NotARegularFile(PathError, code="not_a_regular_file", hint="Only regular files are read and changed."):
    """A FIFO, socket or device."""


class SymlinkRefused(
    PathError,
    code="symlink_refused",
    hint="Links are neither followed nor changed. Name the file itself if that is the one you mean.",
):
    """The path, or a directory in it, is a symbolic link."""


class CrossDevice(PathError, code="cross_device", hint="Other file systems are not part of the workspace."):
    """The path leads into another file system."""


class OutsideWorkspace(
    PathError, code="outside_workspace", hint="Only what lies in the workspace is read and changed."
):
    """The kernel says that the path leaves the workspace."""


class ChangedWhileRead(PathError, code="changed_while_read", hint="Try again."):
    """The file moved under the read more often than it was tried."""


class FileBusy(PathError, code="file_busy", hint="Try again when the other program has closed the file."):
    """Another process holds the file open for writing."""


class FileTooLarge(
    PathError,
    code="too_large",
    hint="Read a part of it with start and end; it can also be searched, changed by passages, moved and deleted.",
):
    """Too large for what was asked, by the policy's limits on sizes."""


class VersionTooLarge(
    CallerError,
    code="version_too_large",
    hint="read_file with at shows lines of it, and revert brings a version back.",
):
    """An old version of a file that is read by pieces: no more than lines of it can be shown."""


class LinesNotCounted(PathError, code="lines_not_counted"):
    """The lines before those asked for are not counted yet; what was counted is kept."""

    def __init__(self, path: str, start: int, counted_bytes: int, size: int) -> None:
        super().__init__(
            path,
            f"to find line {start}, the lines before it must be counted: "
            f"{counted_bytes} of {size} bytes are looked through so far",
            hint="Send the same call again; it goes on from there. Lines from the end (a negative start) and those "
            "near the beginning are read at once.",
        )
        self.details |= {"counted_bytes": counted_bytes, "size": size}


class BinaryFile(PathError, code="binary_file", hint="list_files shows its size."):
    """Not text."""


class AccessRefused(
    PathError, code="access_refused", hint="The daemon's user needs the right to it; ask the person you work for."
):
    """The operating system refuses the daemon this file."""


class IoFailed(
    PathError, code="io_error", hint="Send the call again with the same request_id; else tell the person you work for."
):
    """The disk failed at this file, which holds what it held."""


class CharacterNotEncodable(
    PathError, code="not_encodable", hint="Use characters that the file's encoding has; read_file names it."
):
    """The file's encoding cannot hold a character of the new text."""


# --- policy ----------------------------------------------------------------------------


class Denied(
    CallerError, code="denied", hint="Policy decides this; a person can change it. Do not try to get around it."
):
    """Policy says no."""


class SemanticSearchOff(
    CallerError,
    code="semantic_search_off",
    hint="Search with mode='exact', 'regex' or 'fuzzy'. To turn it on: pip install 'workspace-orchestrator[semantic]', "
    "and name a model2vec folder or a service in [semantic] of the policy (docs/semantic-search.md).",
):
    """A search by meaning needs a model, and none is set up, or it can't be used as it is."""


class EmbeddingFailed(
    CallerError,
    code="embedding_failed",
    hint="Search with mode='exact', 'regex' or 'fuzzy', or send the call again later; `status` says how it is.",
):
    """The model or service that a search by meaning stands on gave no answer this time."""


class PathReserved(
    CallerError, code="path_reserved", hint="Go on with other work, and send the call again when the lease has ended."
):
    """Another agent reserved the path, and policy does not let anybody else in meanwhile."""


class ProgramNotFound(
    CallerError,
    code="program_not_found",
    hint="Programs are looked up on the PATH that the daemon was started with. Name its path, such as "
    ".venv/bin/pytest, or have a person restart the daemon (`orchestrator stop`, then `up`) where it is on the PATH.",
):
    """There is no such program, or it can't be started."""


class CommandRunning(
    CallerError,
    code="command_running",
    hint="Go on with other work, and call again when it has ended.",
):
    """Another command runs in the workspace itself; one at a time may, so that its changes are known for its own."""


class ApprovalRequired(
    CallerError, code="approval_required", hint="Go on with other work, and call again when it is granted."
):
    """Policy lets a person decide, and the read waits for that."""


# --- versions and patches --------------------------------------------------------------


class VersionNotKept(CallerError, code="version_not_kept", hint="file_history shows which versions are kept."):
    """The content at this version is not in the journal."""


class CheckpointInvalid(
    CallerError, code="checkpoint_invalid", hint="`orchestrator journal checkpoint > FILE` makes one."
):
    """What was given as a checkpoint is none."""


class CheckpointOfAnotherJournal(
    CallerError,
    code="checkpoint_of_another_journal",
    hint="Name the workspace that it was made of, with --workspace or --state-dir.",
):
    """The checkpoint is of another journal."""


class NotRedactable(CallerError, code="not_redactable"):
    """Nothing of this event, or this content, can be taken out."""


class VersionUnknown(
    CallerError, code="version_unknown", hint="file_history lists a file's versions, session_status what is pending."
):
    """The journal has no such event, or it is not of the kind asked for."""


class TextTooCostly(
    CallerError,
    code="text_too_costly",
    hint="Quote exact lines, change fewer at once, or read the file again so that nothing has to be merged.",
):
    """Working on a text took longer, or more memory, than one call may have. Nothing was changed."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(
            f"comparing or searching the text took over {limit_s:g} s of processor time, "
            "or more memory than one call may have; nothing was changed",
            details={"limit_s": limit_s},
        )


class StaleBase(CallerError, code="stale_base", hint="Read the file and send the @N of that answer as base."):
    """The named base is not a content that this path ever had."""


class BaseRequired(
    CallerError,
    code="base_required",
    hint="Read the whole file first (read_file), or name the version that you mean with base='@N'. Then send it again.",
):
    """The whole file would be replaced, and this session has not seen it whole."""


class EditStale(
    CallerError,
    code="edit_stale",
    hint="Read the file again with your own tool, then make the edit from what is there.",
):
    """The file changed since the session read what its own tool is about to edit."""


class SearchNotFound(
    CallerError,
    code="search_not_found",
    hint="Copy the lines exactly from a fresh read; the nearest places are shown, if any are like them.",
):
    """The search text, or a hunk of the patch, occurs nowhere."""

    differences: tuple[str, ...] = ()  # at each of `nearest`; they quote the file, so they go where its lines go


class ExpectMismatch(
    SearchNotFound, code="expect_mismatch", hint="Send start, end and expect as the shown lines have them."
):
    """The lines there are others than the expected ones."""


class SearchAmbiguous(
    CallerError, code="search_ambiguous", hint="Add a neighbouring line to it, or set expected_count."
):
    """The search text occurs in more than one place."""


class SymbolNotFound(
    SearchNotFound,
    code="symbol_not_found",
    hint="Take one of the nearest names, in full; in an edit, {search, replace} will do.",
):
    """The file defines nothing of that name."""


class SymbolAmbiguous(
    SearchAmbiguous,
    code="symbol_ambiguous",
    hint="Name it in full ('Class.method'); in an edit, {search, replace} will do.",
):
    """The file defines that name more than once."""


class ChangesOverlap(CallerError, code="changes_overlap", hint="Join the overlapping changes into one."):
    """Two changes of one batch touch the same lines."""


class NothingToChange(CallerError, code="nothing_to_change", hint="The file holds this already."):
    """The change leaves the file as it is."""


class PatchInvalid(
    CallerError, code="patch_invalid", hint="Send a unified diff ('--- a/x', '+++ b/x', '@@ …'), or use edit_file."
):
    """The patch cannot be read in any of its forms."""


class PatchAmbiguous(
    CallerError,
    code="patch_ambiguous",
    hint="Send one form alone: a unified diff, '*** Begin Patch', or search/replace blocks.",
):
    """The patch can be read in more than one way."""


class ChangesConflict(
    CallerError,
    code="changes_conflict",
    hint="Read the current lines and send the patch again, or send it without these files.",
):
    """Some files of a change of several have changed where it wants to go; none was changed."""


class RevertImpossible(CallerError, code="revert_impossible", hint="file_history shows what can be undone."):
    """The change has nothing left to revert, or its contents were not kept."""


# --- the workspace and the daemon ------------------------------------------------------


class WorkspaceNested(OperatorError, code="workspace_nested"):
    """A daemon runs on a workspace inside or around this one."""


class PortTaken(OperatorError, code="port_taken", hint="Start with another one: `orchestrator up --http 7070`."):
    """The port for HTTP can't be had."""


class WorkspaceHeld(OperatorError, code="workspace_held"):
    """Another daemon serves this workspace."""


class DaemonUnreachable(OperatorError, code="daemon_unreachable", hint="Start it with `orchestrator up`."):
    """No daemon answers on the socket."""


class DaemonStopped(
    OperatorError,
    code="daemon_stopped",
    hint="Ask the person you work for to run `orchestrator up`; until then no file can be read or changed.",
):
    """A person stopped the daemon: a running transport refuses each call; a new `orchestrator mcp` starts it again."""


class DaemonRestarted(CallerError, code="daemon_restarted", hint="Send the same call again with the same request_id."):
    """The daemon ended twice while the call was open, or came back without the session that made it."""


class WritesStopped(OperatorError, code="writes_stopped", hint="Repair the disk, then restart the daemon."):
    """The disk refused a sync or is full; nothing is written until that is mended."""


class WorkspaceMoved(
    OperatorError,
    code="workspace_moved",
    hint="Run `orchestrator stop`, then `orchestrator up`: a new daemon serves the folder that is there.",
):
    """The workspace's folder was deleted, moved or replaced; the daemon still holds the one that it was started on."""


class SigningKeyUnusable(OperatorError, code="signing_key_unusable"):
    """The journal's key can't be read or made, so no checkpoint can be signed."""


class DescriptorsExhausted(
    OperatorError,
    code="descriptors_exhausted",
    hint="Close some clients, or start the daemon with a higher limit (`ulimit -n`).",
):
    """The daemon, or the whole system, has no file descriptor left; nothing was changed."""


class StateDirectoryUnusable(
    OperatorError,
    code="state_directory_unusable",
    hint="Make the state directory writable for its owner, then try again.",
):
    """The state directory can't be read or written as the daemon needs it; nothing was changed in it."""


class DiskFull(OperatorError, code="disk_full", hint="Free some space, then send the change again."):
    """No space left for the change; nothing was changed."""


class JournalCorrupt(OperatorError, code="journal_corrupt"):
    """The journal does not hold what it should."""


class JournalTooNew(OperatorError, code="journal_too_new"):
    """The journal was written by a newer program."""


class JournalBehind(OperatorError, code="journal_behind"):
    """The files are ahead of the journal, as after a restored backup."""


class PolicyInvalid(OperatorError, code="policy_invalid"):
    """The policy file cannot be used."""


class PolicyChanged(
    CallerError,
    code="policy_changed",
    hint="`orchestrator policy show` shows what waits; name the digest that it gives.",
):
    """What was to be approved is not what the workspace's policy file holds now."""


# --- the journal's upkeep: archive, collect, back up, restore ------------------------------


class ArchiveMissing(OperatorError, code="archive_missing"):
    """Events were archived, and the file that holds them is not in its place."""


class EventArchived(CallerError, code="event_archived"):
    """An event is in a file, and what is to be done with it takes it in the database."""


class StillNeeded(CallerError, code="still_needed"):
    """What was to be archived holds something that is not over yet."""


class NotLatestSegment(CallerError, code="not_latest_segment"):
    """Segments come back newest first, so that the events in the database have no gap."""


class JournalChanged(CallerError, code="journal_changed", hint="Send the same call again."):
    """What the journal took meanwhile made a prepared act of maintenance wrong; nothing was done."""


class BackupRefused(OperatorError, code="backup_refused"):
    """The place for a backup can't be used."""


class BackupInvalid(
    OperatorError, code="backup_invalid", hint="Use another backup; this one was not finished, or was changed since."
):
    """What is to be restored is no whole backup."""


def plural(count: int, noun: str) -> str:
    """A count and its noun: "1 file", "3 files"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def escaped(text: str) -> str:
    """A text from outside with every control, format, blank-looking and lone surrogate character made visible."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if shows(c) else c.encode("unicode_escape", "backslashreplace").decode("ascii") for c in text)


MOST_PLACES = 20
"""How many of the places that a text is at a refusal names; a character can be at millions."""


def shown_lines(lines: Sequence[int]) -> str:
    """Line numbers for a message: `3, 17, 40 …`."""
    text = ", ".join(str(line) for line in lines[:MOST_PLACES])
    return f"{text} …" if len(lines) > MOST_PLACES else text
