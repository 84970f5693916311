"""Answers of no more than their client passes on to its model: what it would cut away must not count as seen."""

from __future__ import annotations

from typing import Any

import msgspec

from orchestrator.api import results as r
from orchestrator.api.conflicts import Conflicts
from orchestrator.api.history import RollbackAnswer
from orchestrator.api.journal_operations import JournalPage
from orchestrator.api.session_operations import SessionInfo
from orchestrator.core.text.answer_space import AnswerSpace, json_size, size
from orchestrator.engine.paths import quoted

_ENCODER = msgspec.json.Encoder()
_CUT_BYTES = 700
"""What `cut` and `next` take at most, beside a path."""


def json_within(result: r.Result | None, plain: dict[str, Any], room: AnswerSpace) -> dict[str, Any]:
    """The members of an answer, cut to the room; `cut` says what was left out, and `next` is the call that shows it."""
    if json_size(plain) <= room.bytes:
        return plain
    plain = msgspec.json.decode(_ENCODER.encode(plain))
    most = room.bytes - _CUT_BYTES
    cut: dict[str, str] = {}
    while (over := json_size(plain) - most) > 0 and _shorten(plain, over, cut):
        pass
    plain["cut"] = dict(list(cut.items())[:5])
    follow = _next(result, plain)
    if follow and size(follow) < _CUT_BYTES // 2:
        plain["next"] = follow
    if "diff" in cut:
        plain["diff_truncated"] = True
    return plain


def _shorten(node: Any, over: int, cut: dict[str, str], name: str = "") -> bool:
    """Take about so many bytes from the largest part of a document; False where nothing is left to take."""
    items = list(node.items()) if isinstance(node, dict) else list(enumerate(node))
    sized = sorted(((json_size(value), key, value) for key, value in items), key=lambda item: item[0], reverse=True)
    for taken, key, value in sized:
        label = f"{name}.{key}" if name and isinstance(key, str) else str(key) if isinstance(key, str) else name
        match value:
            case str() if taken > 200:
                keep = max(0, len(value) - max(over, len(value) // 20) - 1)
                node[key] = value[:keep]
                cut[label] = f"the first {keep} characters"
                return True
            case list() if len(value) > 1:
                keep = len(value) - 1
                gone = json_size(value[-1])
                while keep > 1 and gone < over:
                    keep -= 1
                    gone += json_size(value[keep]) + 1
                total = cut.get(label, f"of {len(value)}").rpartition("of ")[2]
                node[key] = value[:keep]
                cut[label] = f"the first {keep} of {total}"
                return True
            case dict() | list() if _shorten(value, over, cut, label):
                return True
            case _:
                continue
    return False


def _next(result: r.Result | None, plain: dict[str, Any]) -> str:
    """The call that shows what was left out; "" where none does."""
    match result:
        case JournalPage() if plain["entries"]:
            plain["cursor"] = plain["entries"][-1]["seq"]
        case Conflicts() if plain["conflicts"]:
            last = plain["conflicts"][-1]["conflict"]
            if len(plain["conflicts"]) == len(result.conflicts):
                return f'list_conflicts(conflict="{last}", max_tokens=500)'
            plain["cursor"] = last
        case RollbackAnswer(status="preview"):
            return "the same call with globs=[…], for a part of the files"
        case r.ChangeAnswer(status="applied", paths=(path,)) if path.before and path.after:
            return f'get_diff(path={quoted(path.path)}, from="{path.before}", to="{path.after}")'
        case r.ChangeAnswer(status="applied", version_id=str(version), change=str(change)):
            return f'get_diff(from="{change}", to="{version}")'
        case SessionInfo():
            return "journal_query(), of the full toolset"
        case r.ChangeAnswer(paths=(path, *_)):
            return f"read_file(path={quoted(path.path)})"
        case _:
            return ""
    return f"the same call with cursor={plain['cursor']!r}" if "cursor" in plain else ""
