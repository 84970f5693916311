"""Edits and the way back."""

from __future__ import annotations

from typing import Any

from orchestrator.api.history import ROLLBACK
from orchestrator.api.operations import EDIT_FILE, FILE_HISTORY, REVERT
from orchestrator.api.results import ChangeAnswer, FileVersion
from orchestrator.core.errors import (
    ChangesOverlap,
    OrchestratorError,
    ParameterInvalid,
    RevertImpossible,
    SearchAmbiguous,
    SearchNotFound,
)
from orchestrator.servers.toolsets import texts
from orchestrator.servers.toolsets.largefile import params as p
from orchestrator.servers.toolsets.largefile.answers import answer, half
from orchestrator.servers.toolsets.largefile.settings import Settings, settings_of
from orchestrator.servers.toolsets.tool import Calls, ToolAnswer

SIMILAR_CHARACTERS = 100


async def edit(calls: Calls, params: p.Edit) -> ToolAnswer:
    """Change passages of a file, or show what would become of it."""
    path, settings = calls.absolute(params.absolute_file_path), settings_of(calls.settings)
    single = params.changes is None
    changes = params.changes or ()
    if params.search_text is not None and params.replace_text is not None and single:
        changes = (p.Replacement(search=params.search_text, replace=params.replace_text),)
    if not changes:
        raise ParameterInvalid("changes", "Empty changes array. Provide at least one change.")
    if len(changes) > settings.max_batch_changes:
        why = f"Too many changes: {len(changes)} exceeds limit of {settings.max_batch_changes}."
        raise ParameterInvalid("changes", why, hint="Split into multiple calls.")
    sent = [
        {"search": one.search, "replace": one.replace, "fuzzy": one.fuzzy if one.fuzzy is not None else params.fuzzy}
        for one in changes
    ]
    try:
        done = await calls.change(
            EDIT_FILE, path=path, changes=sent, preview=params.preview, request_id=params.request_id
        )
    except (SearchNotFound, SearchAmbiguous, ChangesOverlap) as error:
        failed = _failed(error, len(sent), settings)
        return answer(_single(failed, changes[0].search) if single else failed, shown=error.shown)
    diff, cut = await texts.change_diff(calls, done, room=half(calls))
    said = _applied(done, len(sent), _indented(diff) if diff else "The diff is not shown.")
    notes = (*done.warnings, *cut)
    if done.status == "preview" and done.would_be != "applied":
        notes += (f"[sent with preview=false, this would be: {done.would_be}]",)
    return answer(_single(said, changes[0].search) if single else said, *notes)


def _applied(done: ChangeAnswer, count: int, preview: str) -> dict[str, Any]:
    written = [lines for changed in done.paths for lines in changed.written]
    kind = "fuzzy" if done.rung == "fuzzy" else "exact"
    result = {"match_type": kind, "similarity": done.score if done.score is not None else 1.0}
    line = {"line_number": written[0].start} if count == 1 and written else {}
    before = done.paths[0].before if done.paths and done.status == "applied" else None
    return {
        "success": True,
        "changes_applied": count,
        "changes_failed": 0,
        "results": [{"index": index, "success": True, **line, **result} for index in range(count)],
        "preview": preview,
        "backup_created": before,
    }


def _failed(error: OrchestratorError, count: int, settings: Settings) -> dict[str, Any]:
    """None is done. The ones after the first that fails were not looked for."""
    at = error.details.get("change", 0)
    why = "Pattern not found" if isinstance(error, SearchNotFound) else error.message
    result: dict[str, Any] = {"index": at, "success": False, "error": why}
    similar = [
        {"line": place["line"], "end_line": place["end_line"], "similarity": place["score"]}
        for place in error.details.get("nearest", ())
        if place.get("score", 0) >= settings.similar_match_threshold
    ]
    if similar:
        result["similar_matches"] = similar[: settings.similar_match_limit]
    if error.hint:
        result["suggestion"] = error.hint
    return {
        "success": False,
        "changes_applied": 0,
        "changes_failed": count,
        "results": [result],
        "preview": "No changes detected",
        "backup_created": None,
    }


def _single(said: dict[str, Any], searched: str) -> dict[str, Any]:
    """The answer of the first versions, which had one change in a call."""
    result, done = said["results"][0], said["success"]
    single = {
        "success": done,
        "preview": said["preview"] if done else f"No matches found for: {searched[:SIMILAR_CHARACTERS]}",
        "changes_made": said["changes_applied"],
        "match_type": result.get("match_type", "none"),
        "similarity_used": result.get("similarity", 0.0),
        "line_number": result.get("line_number", 0),
        "backup_created": said["backup_created"],
    }
    more = {name: result[name] for name in ("similar_matches", "suggestion") if name in result}
    return {**single, **({} if done else {"search_attempted": searched, **more})}


def _indented(diff: str) -> str:
    """Hunks as its previews have them."""
    at = diff.find("@@")
    rows = diff[at:].splitlines() if at >= 0 else []
    return "\n".join(row if row.startswith("@@") else f"  {row}" for row in rows) or "No changes detected"


async def revert(calls: Calls, params: p.Revert) -> ToolAnswer:
    """Undo the session's last edit of a file, or all that came after an earlier state."""
    path, most = calls.absolute(params.absolute_file_path), settings_of(calls.settings).max_backups
    states = [state for state in await _states(calls, path) if not state.removed]
    if len(states) < 2:
        raise RevertImpossible("No backups found for this file", hint="")
    earlier, asked = states[1:], params.backup_id
    target = next((state for state in earlier if state.version_id == asked), None)
    if asked is None:
        change = texts.last_own(states, calls.session)
        if change is None:
            raise RevertImpossible("No edit of this session is there to revert", hint="Send backup_id.")
        done = await calls.change(REVERT, change=change, request_id=params.request_id)
        undone = next(at for at, state in enumerate(states) if state.change == change)
        target = states[min(undone + 1, len(states) - 1)]
    elif target is None:
        known = ", ".join(state.version_id for state in earlier[:most])
        raise RevertImpossible(f"Backup {asked} not found. Available backups: {known}", hint="")
    else:
        name = "/" + path[len(calls.root.rstrip("/")) + 1 :]
        rolled_back = await calls.change(
            ROLLBACK, globs=[texts.escaped_glob(name)], since=target.version_id, request_id=params.request_id
        )
        done = rolled_back
    now = [state for state in await _states(calls, path) if not state.removed]
    return answer(
        {
            "success": True,
            "reverted_to": _state(target, path),
            "current_saved_as": _state(states[0], path),
            "available_backups": [_state(state, path) for state in now[1 : most + 1]],
        },
        *done.warnings,
    )


async def _states(calls: Calls, path: str) -> list[FileVersion]:
    """Newest first; the first is the present one."""
    return list((await calls.make(FILE_HISTORY, path=path, limit=texts.MOST_VERSIONS)).versions)


def _state(state: FileVersion, path: str) -> dict[str, Any]:
    return {
        "id": state.version_id,
        "timestamp": f"{texts.moment(state.at):%Y-%m-%dT%H:%M:%S+00:00}",
        "size": state.size,
        "path": path,
    }
