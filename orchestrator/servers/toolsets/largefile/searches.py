"""Searches of a file and of a directory."""

from __future__ import annotations

from typing import Any

from orchestrator.api.operations import SEARCH_CONTENT
from orchestrator.api.results import Hit, SearchResult
from orchestrator.core.errors import ParameterInvalid
from orchestrator.servers.toolsets.largefile import params as p
from orchestrator.servers.toolsets.largefile.answers import answer, directory, half
from orchestrator.servers.toolsets.largefile.settings import settings_of
from orchestrator.servers.toolsets.tool import Calls, ToolAnswer

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
        return answer({"count": found.total, **about}, *notes)
    results = [_match(hit, most) for hit in found.hits]
    for row, hit in zip(results, found.hits, strict=True):
        row["submatches"] = [{"start": part.start, "end": part.end} for part in hit.submatches]
        row["semantic_context"] = hit.context or f"Line {hit.line}"
    return answer({"results": results, "total_matches": found.total, **about}, *notes)


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
    by_file = dict[str, list[dict[str, Any]]]()
    for hit in found.hits:
        name = calls.below(path, hit.path)
        by_file.setdefault(name, []).append(_match(hit, settings.truncate_length))
    return answer(
        {
            "path": path,
            "pattern": params.pattern,
            "include_pattern": params.include_pattern,
            "total_matches": len(found.hits),
            "files_searched": found.files_searched,
            "files_with_matches": len(by_file),
            "truncated": found.truncated,
            "truncated_at": list(by_file)[-1] if found.truncated and by_file else None,
            "results": [{"file": name, "matches": matches} for name, matches in by_file.items()],
        },
        *notes,
    )


async def first_match(calls: Calls, path: str, pattern: str) -> Hit:
    """The best match of a text in a file. Raises ParameterInvalid where there is none."""
    found, _ = await _found(
        calls, fuzzy=True, regex=False, path=path, pattern=pattern, case_sensitive=False, context_lines=0, max_results=1
    )
    if not found.hits:
        raise ParameterInvalid("pattern", f"Pattern '{pattern}' not found in file. Try a different search term")
    return found.hits[0]


async def _found(calls: Calls, *, fuzzy: bool, regex: bool, **params: Any) -> tuple[SearchResult, list[str]]:
    """What a search finds; exact alone where the pattern can't be looked for with typos."""
    mode = "regex" if regex else "fuzzy" if fuzzy and not params.get("invert") else "exact"
    if not params.get("count_only"):
        params["semantic_context"] = True
    notes = list[str]()
    try:
        found = await calls.make(SEARCH_CONTENT, room=half(calls), mode=mode, **params)
    except ParameterInvalid as error:
        if mode != "fuzzy":
            raise
        notes.append(NO_FUZZY.format(why=error.message))
        found = await calls.make(SEARCH_CONTENT, room=half(calls), mode="exact", **params)
    if found.partial:
        notes.append("[not every file could be searched]")
    return found, [*notes, *found.warnings]


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
