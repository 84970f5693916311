"""The text editor tool that Anthropic's models know: its commands as tools, or as one tool with `command`."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from orchestrator.api import operations as o
from orchestrator.api import parameters as p
from orchestrator.api.results import ChangeAnswer, FileText, Result
from orchestrator.core.errors import (
    FileNotFound,
    NotAFile,
    OrchestratorError,
    ParameterInvalid,
    PathNotCanonical,
    RevertImpossible,
)
from orchestrator.servers.toolsets import texts
from orchestrator.servers.toolsets.tool import Calls, OwnRequestId, Tool, ToolAnswer, ToolsetEntry, sentence

ONE_TOOL = ("str_replace_based_edit_tool", "str_replace_editor")
"""What models call it where all commands are one tool."""

AROUND = 4
"""Lines shown around an edit."""

LEVELS = 2
"""Of directories that `view` shows."""

FilePath = Annotated[p.AnyPath, Meta(description="Absolute path, e.g. /repo/file.py.")]


class View(p.Params, frozen=True):
    path: Annotated[p.AnyPath, Meta(description="Absolute path of a file or directory.")]
    view_range: Annotated[tuple[int, ...] | None, Meta(description="[first, last] line; last -1: to the end.")] = None


class Create(p.Params, frozen=True):
    path: FilePath
    file_text: Annotated[p.Content, Meta(description="The content of the new file.")]
    request_id: OwnRequestId = None


class StrReplace(p.Params, frozen=True):
    path: FilePath
    old_str: Annotated[p.Content, Meta(description="Text that stands in the file exactly once.")]
    new_str: Annotated[p.Content, Meta(description="Text to put in its place.")] = ""
    request_id: OwnRequestId = None


class Insert(p.Params, frozen=True):
    path: FilePath
    insert_line: Annotated[int, Meta(description="Line after which the text is put; 0: at the beginning.")]
    insert_text: Annotated[p.Content | None, Meta(description="Lines to insert.")] = None
    new_str: Annotated[p.Content | None, Meta(description="The same, as older versions call it.")] = None
    request_id: OwnRequestId = None


class UndoEdit(p.Params, frozen=True):
    path: FilePath
    request_id: OwnRequestId = None


async def _view(calls: Calls, params: View) -> ToolAnswer:
    path = _absolute(calls, params.path)
    known = await texts.facts(calls, path)
    if not known.exists:
        raise FileNotFound(path, "there is nothing")
    if known.type == "DirectoryEntry":
        if params.view_range:
            raise ParameterInvalid("view_range", "is not allowed when `path` points to a directory")
        return await _view_directory(calls, path)
    start, end = _range(params.view_range, known.line_count)
    shown = await texts.text_of(calls, path, start, end)
    notes = texts.cut_note(shown, end=end, how=f"; view_range=[{shown.end + 1}, -1] goes on")
    return ToolAnswer(_numbered(shown, path), notes=notes)


def _range(given: tuple[int, ...] | None, total: int | None) -> tuple[int, int | None]:
    """First and last line. Raises ParameterInvalid."""
    if given is None:
        return 1, None
    if len(given) != 2:
        raise ParameterInvalid("view_range", "should be a list of two integers")
    start, end = given
    if start < 1 or (total is not None and start > max(total, 1)):
        raise ParameterInvalid("view_range", f"{list(given)}: its first line is not one of the file's {total} lines")
    if end != -1 and end < start:
        raise ParameterInvalid("view_range", f"{list(given)}: its last line is before the first")
    return start, None if end == -1 else end


async def _view_directory(calls: Calls, path: str) -> ToolAnswer:
    rows = texts.Rows(calls.room)
    rows.add(path)
    async for entry in texts.entries(calls, path, recursive=True, max_depth=LEVELS, hidden=False):
        rows.add(calls.shown(entry.path))
    head = f"Here's the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    return ToolAnswer("\n".join((head, *rows.rows, "")), notes=rows.notes)


async def _create(calls: Calls, params: Create) -> ToolAnswer:
    path = _absolute(calls, params.path)
    await calls.change(o.WRITE_FILE, path=path, content=params.file_text, mode="create", request_id=params.request_id)
    return ToolAnswer(f"File created successfully at: {path}")


async def _str_replace(calls: Calls, params: StrReplace) -> ToolAnswer:
    path = _absolute(calls, params.path)
    change = {"search": params.old_str, "replace": params.new_str}
    answer = await calls.change(o.EDIT_FILE, path=path, changes=[change], request_id=params.request_id)
    return await _edited(calls, path, answer, "Review the changes and make sure they are as expected.")


async def _insert(calls: Calls, params: Insert) -> ToolAnswer:
    path, line = _absolute(calls, params.path), params.insert_line
    text = params.insert_text if params.insert_text is not None else params.new_str
    if text is None:
        raise ParameterInvalid("insert_text", "is required")
    known = await texts.facts(calls, path)
    total = known.line_count
    if known.type == "FileEntry" and total is not None and not 0 <= line <= total:
        why = f"{line}. It should be within the range of lines of the file: [0, {total}]"
        raise ParameterInvalid("insert_line", why)
    if total == 0:
        answer = await calls.change(o.WRITE_FILE, path=path, content=text, mode="append", request_id=params.request_id)
    else:
        beside = await texts.text_of(calls, path, max(line, 1), max(line, 1))
        calls.held.clear()  # it is not shown
        own = beside.text.removesuffix("\n")
        given = text.removesuffix("\n")
        change = {
            "start": beside.start,
            "end": beside.end,
            "expect": own,
            "replace": f"{own}\n{given}" if line else f"{given}\n{own}",
        }
        answer = await calls.change(
            o.EDIT_FILE, path=path, changes=[change], base=beside.version_id, request_id=params.request_id
        )
    said = "Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc)."
    return await _edited(calls, path, answer, said)


async def _edited(calls: Calls, path: str, answer: ChangeAnswer, said: str) -> ToolAnswer:
    """What was done, with the lines around it as they are now."""
    done = f"The file {path} has been edited."
    written = [lines for changed in answer.paths for lines in changed.written]
    start = max(1, (written[0].start if written else 1) - AROUND)
    end = max(lines.end for lines in written) + AROUND if written else start + AROUND
    try:
        shown = await texts.text_of(calls, path, start, end)
    except OrchestratorError as error:
        return ToolAnswer(done, notes=(*answer.warnings, f"[its lines are not shown: {sentence(error)}]"))
    text = f"{done} {_numbered(shown, f'a snippet of {path}')}{said} Edit the file again if necessary."
    return ToolAnswer(text, notes=(*answer.warnings, *texts.cut_note(shown, end=end)))


async def _undo(calls: Calls, params: UndoEdit) -> ToolAnswer:
    path = _absolute(calls, params.path)
    history = await calls.make(o.FILE_HISTORY, path=path, limit=texts.MOST_VERSIONS)
    change = texts.last_own(history.versions, calls.session)
    if change is None:
        raise RevertImpossible(f"No edit history found for {path}.", hint="")
    await calls.change(o.REVERT, change=change, request_id=params.request_id)
    done = f"Last edit to {path} undone successfully."
    try:
        shown = await texts.text_of(calls, path)
    except OrchestratorError as error:  # it was what created the file
        return ToolAnswer(done if error.code == "not_found" else f"{done} {sentence(error)}")
    return ToolAnswer(f"{done} {_numbered(shown, path)}", notes=texts.cut_note(shown))


def _absolute(calls: Calls, raw: str) -> str:
    if not raw.startswith(("/", "~")):
        suggested = calls.absolute(raw)
        raise PathNotCanonical(raw, f"is not an absolute path, it should start with `/`. Maybe you meant {suggested}?")
    return calls.absolute(raw)


def _numbered(shown: FileText, what: str) -> str:
    if shown.summary:  # its rows have their numbers
        return f"A summary of {what}:\n{shown.text}"
    lines = shown.text.removesuffix("\n").split("\n")
    rows = "".join(f"{number:6}\t{line}\n" for number, line in enumerate(lines, max(shown.start, 1)))
    return f"Here's the result of running `cat -n` on {what}:\n{rows}"


def _refused(error: OrchestratorError, root: str) -> str:
    path = str(error.details.get("path", ""))
    absolute = path if path.startswith("/") else f"{root.rstrip('/')}/{path}"
    match error:
        case FileNotFound():
            return f"The path {absolute} does not exist. Please provide a valid path."
        case NotAFile():
            return f"The path {absolute} is a directory and only the `view` command can be used on directories"
        case ParameterInvalid() if error.details.get("parameter") in ("view_range", "insert_line"):
            name, _, why = error.message.partition(": ")
            return f"Invalid `{name}` parameter: {why}"
        case PathNotCanonical():
            return f"The path {error.message}"
        case _:
            pass
    match error.code:
        case "already_exists":
            return f"File already exists at: {absolute}. Cannot overwrite files using command `create`."
        case "search_not_found":
            return f"No replacement was performed, old_str did not appear verbatim in {absolute}. {sentence(error)}"
        case "search_ambiguous":
            return f"No replacement was performed. Multiple occurrences of old_str. {sentence(error)}"
        case _:
            return sentence(error)


def _commands(name: str, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A call of the one tool as a call of a command."""
    if name not in ONE_TOOL or not isinstance(given.get("command"), str):
        return name, given
    return given["command"], {key: value for key, value in given.items() if key != "command"}


EDITOR = ToolsetEntry(
    (
        Tool(
            "view",
            View,
            Result,
            "Show a file with line numbers, or what is in a directory, two levels deep.",
            run=_view,
            uses=(o.READ_FILE,),
        ),
        Tool(
            "create",
            Create,
            Result,
            "Create a file; one that is there is not overwritten.",
            run=_create,
            uses=(o.WRITE_FILE,),
            writes=True,
        ),
        Tool(
            "str_replace",
            StrReplace,
            Result,
            "Replace a text that stands exactly once in a file.",
            run=_str_replace,
            uses=(o.EDIT_FILE,),
            writes=True,
            destructive=True,
        ),
        Tool("insert", Insert, Result, "Insert lines into a file.", run=_insert, uses=(o.EDIT_FILE,), writes=True),
        Tool(
            "undo_edit",
            UndoEdit,
            Result,
            "Undo your last edit of a file; what others changed since is kept.",
            run=_undo,
            uses=(o.REVERT,),
            writes=True,
            destructive=True,
        ),
    ),
    _refused,
    _commands,
)
