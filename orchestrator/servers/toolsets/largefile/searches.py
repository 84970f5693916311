"""Searches of a file and of a directory."""

from __future__ import annotations

from typing import Any

from orchestrator.api.operations import SEARCH_CONTENT
from orchestrator.api.results import Hit, SearchResult
from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.text.answer_space import json_size
from orchestrator.servers.toolsets.largefile import params as p
from orchestrator.servers.toolsets.largefile.answers import answer, directory, half
from orchestrator.servers.toolsets.largefile.settings import settings_of
from orchestrator.servers.toolsets.tool import Calls, ToolAnswer

FRAME_BYTES = 1_500
"""Of an answer beside its matches: what was asked for, and notes."""

MOST_EDITS = 3
"""Typos of a match, as far as searches are complete."""

DEFAULT = p.Search(absolute_file_path="", pattern="")

PARTIAL = (
    "[not all was searched: parts of the pattern stand in too many places, or a file is too large or was changed. "
    "Send {better}]"
)

NO_FUZZY = "[not searched with typos: {why}]"


async def search(calls: Calls, params: p.Search) -> ToolAnswer:
    """Matches in one file."""
    path, most = calls.absolute(params.absolute_file_path), settings_of(calls.settings).truncate_length
    found, notes = await _found(
        calls,
        fuzzy=params.fuzzy,
        regex=params.regex,
        path=path,
        pattern=params.pattern,
        case_sensitive=params.case_sensitive,
        invert=params.invert,
        count_only=params.count_only,
        context_lines=params.context_lines,
        max_results=params.max_results,
    )
    about = {
        "pattern": params.pattern,
        "fuzzy_enabled": params.fuzzy,
        "regex_enabled": params.regex,
        "case_sensitive": params.case_sensitive,
        "inverted": params.invert,
    }
    if params.count_only:
        ignored = [name for name in ("max_results", "context_lines") if getattr(params, name) != getattr(DEFAULT, name)]
        warnings = [f"{name} ignored in count_only mode" for name in ignored]
        return answer({"count": found.total, **about, **({"warnings": warnings} if warnings else {})}, *notes)
    rows = [
        {
            **_match(hit, most),
            "submatches": [{"start": part.start, "end": part.end} for part in hit.submatches],
            "semantic_context": hit.context or f"Line {hit.line}",
        }
        for hit in found.hits
    ]
    results, cut = _fitting(calls, found, rows)
    return answer({"results": results, "total_matches": found.total, **about}, *notes, *cut)


async def search_directory(calls: Calls, params: p.SearchDirectory) -> ToolAnswer:
    """Matches in the files of a directory, by file."""
    path, settings = await directory(calls, params.absolute_dir_path), settings_of(calls.settings)
    globs = (params.include_pattern, *(() if params.include_hidden else ("!.*",)))
    globs += tuple(f"!{name}/" for name in settings.ignored)
    most = params.max_results or settings.max_dir_search_results
    found, notes = await _found(
        calls,
        fuzzy=params.fuzzy,
        regex=params.regex,
        path=path,
        globs=globs,
        pattern=params.pattern,
        case_sensitive=params.case_sensitive,
        invert=params.invert,
        context_lines=params.context_lines,
        max_results=most,
    )
    rows, cut = _fitting(calls, found, [_match(hit, settings.truncate_length) for hit in found.hits])
    by_file = dict[str, list[dict[str, Any]]]()
    for hit, row in zip(found.hits, rows, strict=False):
        by_file.setdefault(calls.below(path, hit.path), []).append(row)
    truncated = found.truncated or bool(cut)
    return answer(
        {
            "path": path,
            "pattern": params.pattern,
            "include_pattern": params.include_pattern,
            "total_matches": len(rows),
            "files_searched": found.files_searched,
            "files_with_matches": len(by_file),
            "truncated": truncated,
            "truncated_at": list(by_file)[-1] if truncated and by_file else None,
            "results": [{"file": name, "matches": matches} for name, matches in by_file.items()],
        },
        *notes,
        *cut,
    )


async def first_match(calls: Calls, path: str, pattern: str) -> Hit:
    """The best match of a text in a file, the first of equals. Raises ParameterInvalid where there is none."""
    for fuzzy in (False, True):
        found, _ = await _found(
            calls, fuzzy=fuzzy, regex=False, path=path, pattern=pattern, case_sensitive=False, context_lines=0
        )
        calls.held.clear()  # the match is not shown here
        if found.hits:
            return max(found.hits, key=lambda hit: hit.score)
    raise ParameterInvalid("pattern", f"Pattern '{pattern}' not found in file. Try a different search term")


async def _found(calls: Calls, *, fuzzy: bool, regex: bool, **params: Any) -> tuple[SearchResult, list[str]]:
    """What a search finds; exact alone where the pattern can't be looked for with typos."""
    edits = min(MOST_EDITS, int(len(params["pattern"]) * (1 - settings_of(calls.settings).fuzzy_threshold)))
    mode = "regex" if regex else "fuzzy" if fuzzy and edits > 0 and not params.get("invert") else "exact"
    if mode == "fuzzy":
        params["max_edits"] = edits
    if not params.get("count_only"):
        params["semantic_context"] = True
    notes = list[str]()
    try:
        found = await calls.make(SEARCH_CONTENT, room=half(calls), mode=mode, **params)
    except ParameterInvalid as error:
        if mode != "fuzzy":
            raise
        notes.append(NO_FUZZY.format(why=error.message))
        found = await calls.make(SEARCH_CONTENT, room=half(calls), mode="exact", **params | {"max_edits": None})
    if found.partial:
        better = "a longer pattern, or one file"
        notes.append(PARTIAL.format(better=f"fuzzy=false, {better}" if mode == "fuzzy" else better))
    return found, [*notes, *found.warnings]


def _fitting(
    calls: Calls, found: SearchResult, rows: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The first of the matches for which the answer has room; lines that it does not show whole are not seen."""
    room = calls.room.less(FRAME_BYTES)
    fits = room.first(((json_size(row) + json_size(hit.path), 1) for row, hit in zip(rows, found.hits, strict=True)))
    calls.shortened({hit.path for hit, row in zip(found.hits, rows, strict=True) if row["truncated"]})
    calls.shortened({hit.path for hit in found.hits[fits:]})
    note = f"[cut: {fits} of {len(rows)} matches are shown; search for less, or send less context_lines]"
    return rows[:fits], (note,) if fits < len(rows) else ()


def _match(hit: Hit, most: int) -> dict[str, Any]:
    cut = len(hit.text) > most
    return {
        "line_number": hit.line,
        "match": f"{hit.text[:most]}..." if cut else hit.text,
        "context_before": list(hit.before),
        "context_after": list(hit.after),
        "similarity_score": hit.score,
        "truncated": cut,
        "match_type": hit.match_type,
    }
