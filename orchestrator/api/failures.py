"""Parameters as callers send them, and what is wrong with those that can't be read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, takewhile
from typing import Any, Literal, get_args, get_origin

import msgspec
from rapidfuzz import fuzz, process

from orchestrator.api.framing import UNREADABLE
from orchestrator.api.operation import AnyOperation
from orchestrator.api.operations import BY_NAME
from orchestrator.api.parameters import CHANGE_FORMS, FORM, MOST_GLOB_CHARACTERS, EditFile, Params
from orchestrator.core import errors as e
from orchestrator.core.braces import alternatives, has_brace
from orchestrator.core.globs import Glob
from orchestrator.core.policy.tables import glob_problem, words_of

_ALIASES = {
    "file": "path",
    "file_path": "path",
    "filename": "path",
    "offset": "start",
    "pattern": "glob",
    "query": "pattern",
    "regex": "pattern",
    "text": "content",
    "diff": "patch",
    "version": "change",
    "dest": "destination",
    "target": "destination",
}
"""What other tools call our parameters."""

_SHOWN = 200
"""Characters of a name that is not ours in a refusal."""

_EDIT_NAMES = (("search", "replace"), ("old_string", "new_string"), ("old_str", "new_str"))
"""What tools call the two texts of a change."""

_OF_CHANGE = ("search", "replace", "expected_count")
"""Parameters that belong to the one change of a call without a list."""

_IN_CHANGES = {*_OF_CHANGE, "replace_all", "symbol", "content", "start", "end", "expect", *chain(*_EDIT_NAMES)}
"""What belongs into a change, and is no parameter of the call."""


BRACES = r"Braces hold choices: '*.{py,ts}'. One that belongs to a name has a backslash before it: '\{'."


def operation_named(name: str) -> AnyOperation:
    """Look an operation up. Raises UnknownOperation with the nearest name."""
    operation = BY_NAME.get(name)
    if operation is not None:
        return operation
    name = name[:_SHOWN]
    nearest = _nearest(name, BY_NAME)
    raise e.UnknownOperation(
        f"there is no operation {e.escaped(name)!r}",
        hint=f"Did you mean {nearest}?" if nearest else None,
        details={"operation": e.escaped(name), "nearest": nearest},
    )


def parse_params(operation: AnyOperation, raw: bytes | msgspec.Raw) -> Params:
    """Read an operation's parameters from JSON.

    Raises ParameterUnknown (with the nearest right name and a corrected call), ParameterInvalid for a wrong type or
    range.
    """
    try:
        try:
            return _bounded(msgspec.json.decode(raw, type=operation.struct))
        except msgspec.ValidationError:  # `params_from` explains what is wrong with the plain data
            given = msgspec.json.decode(raw)
    except UNREADABLE as error:
        why = f"not JSON: {error}"
        raise e.ParameterInvalid("params", why, hint="Send a JSON object, encoded in UTF-8.") from error
    return params_from(operation, given)


def params_from(operation: AnyOperation, given: Any) -> Params:
    """Read an operation's parameters from plain data; as `parse_params`."""
    if given is None:
        given = {}
    if not isinstance(given, dict):
        raise e.ParameterInvalid("params", "must be an object with the operation's parameters")
    given = {name: value for name, value in given.items() if value is not None}
    if operation.struct is EditFile:
        given = _unflattened(given)
    try:
        return _bounded(msgspec.convert(given, operation.struct, strict=True))
    except msgspec.ValidationError as error:
        raise _explained(operation, given, str(error)) from error


def _bounded(params: Params) -> Params:
    """Lists of globs have a bound on their sum, too. Raises ParameterInvalid."""
    one = getattr(params, "glob", None)
    globs = getattr(params, "globs", ()) or (() if one is None else (one,))
    given = sum(map(len, globs))
    if given > MOST_GLOB_CHARACTERS:
        raise e.ParameterInvalid("globs", f"has {given:,} characters, of at most {MOST_GLOB_CHARACTERS:,} in all")
    meant = alternatives(globs)
    if meant is None:
        raise e.ParameterInvalid("globs", "its braces stand for too many globs")
    for glob in meant:
        if problem := glob_problem(glob):
            raise e.ParameterInvalid("globs", f"{glob!r}: {problem}", hint="A glob is gitignore-style: 'src/**/*.py'.")
        if has_brace(glob):
            raise e.ParameterInvalid("globs", f"{glob!r} has a brace without its counterpart or a choice", hint=BRACES)
    behind = [*takewhile(lambda glob: glob.exception, map(Glob, reversed(meant)))]
    if any(glob.universal for glob in behind):
        hint = "Leave that out: '!' excepts, and the last glob that fits decides."
        raise e.ParameterInvalid("globs", "their last exceptions leave nothing", hint=hint)
    return params


def _unflattened(given: dict[str, Any]) -> dict[str, Any]:
    """Accept `search` and `replace` beside `path` as one change, one change without its list, and a list as JSON."""
    if "file_path" in given and "path" not in given:
        given = {"path" if name == "file_path" else name: value for name, value in given.items()}
    changes = given.get("changes")
    if changes is None:
        rest = _renamed(given)
        if "search" not in rest or "replace" not in rest:
            return given
        change = {name: rest.pop(name) for name in _OF_CHANGE if name in rest}
        return {**rest, "changes": [change]}
    if isinstance(changes, str):
        with suppress(ValueError, RecursionError):
            changes = json.loads(changes)
    changes = [changes] if isinstance(changes, dict) else changes
    return {**given, "changes": list(map(_renamed, changes))} if isinstance(changes, list) else given


def _renamed(change: Any) -> Any:
    """A copy of a change in which its two texts have our names."""
    if not isinstance(change, dict):
        return change
    for names in _EDIT_NAMES:
        if all(name in change for name in names):
            ours = dict(zip(names, _EDIT_NAMES[0], strict=True))
            return {ours.get(name, name): value for name, value in change.items()}
    return dict(change)


def _explained(operation: AnyOperation, given: dict[str, Any], message: str) -> e.OrchestratorError:
    """Turn msgspec's message into an error with the next step."""
    known = [field.encode_name for field in msgspec.structs.fields(operation.struct)]
    for name in given:
        if name not in known:
            return _unknown(operation, name, known, given)
    where = message.rpartition(" - at `$")[2].rstrip("`").lstrip(".") if " - at `$" in message else "params"
    what = message.partition(" - at `$")[0]
    if what.startswith("Object missing required field"):
        where = what.split("`")[1]
        what = "is required"
    elif what.startswith("Object contains unknown field"):
        hint = CHANGE_FORMS if where.startswith("changes") else None
        return e.ParameterUnknown(f"{operation.name}: {where}: {what}", hint=hint, details={"parameter": where})
    form = _form(operation, where) if "matching regex" in what else ""
    what = f"must be {form}" if form else what
    return e.ParameterInvalid(where or "params", what, hint=_shape(operation, where.partition("[")[0]))


def _form(operation: AnyOperation, name: str) -> str:
    """What a text with a pattern looks like."""
    kinds = {field.encode_name: field.type for field in msgspec.structs.fields(operation.struct)}
    return next(_forms(kinds.get(name.partition("[")[0])), "")


def _forms(kind: Any) -> Iterator[str]:
    for part in get_args(kind):
        if isinstance(part, msgspec.Meta) and FORM in (part.extra or {}):
            yield str((part.extra or {})[FORM])
        yield from _forms(part)


def _shape(operation: AnyOperation, name: str) -> str:
    """What to send for a parameter, as a hint."""
    kinds = {field.encode_name: field.type for field in msgspec.structs.fields(operation.struct)}
    words = words_of(kinds.get(name))
    if words:
        return f"Send one of: {', '.join(map(str, words))}."
    if operation.struct is EditFile and name == "changes":
        return f"changes is a list: [{{search, replace}}, …]. {CHANGE_FORMS}"
    return f"{operation.name} takes: {', '.join(_listed(kinds))}. Send them with the types of its schema."


def _listed(known: Iterable[str]) -> list[str]:
    """Parameters as a refusal lists them. The approver code is a person's, who is asked for it."""
    return [name for name in known if name != "approver"]


def _is_list(kind: Any) -> bool:
    return get_origin(kind) is tuple or (get_origin(kind) is not Literal and any(map(_is_list, get_args(kind))))


def _unknown(operation: AnyOperation, name: str, known: list[str], given: dict[str, Any]) -> e.ParameterUnknown:
    shown_name = e.escaped(name[:_SHOWN])
    nearest = _nearest(name[:_SHOWN], known)
    few = given if len(given) <= len(known) else ()  # of more, one at least has no name of ours
    ours = {key: key if key in known else _nearest(key[:_SHOWN], known) for key in few}
    hint = f"{operation.name} takes: {', '.join(_listed(known)) or 'no parameters'}."
    if operation.struct is EditFile and name in _IN_CHANGES:
        hint = f"changes is a list: [{{search, replace, expected_count}}, …]. {CHANGE_FORMS}"
    elif nearest and ours and None not in ours.values() and len(set(ours.values())) == len(ours):
        kinds = {field.encode_name: field.type for field in msgspec.structs.fields(operation.struct)}
        lists = {key for key, kind in kinds.items() if _is_list(kind)}
        corrected = {str(ours[key]): value for key, value in given.items()}
        corrected |= {key: [value] for key, value in corrected.items() if key in lists and isinstance(value, str)}
        shown = msgspec.json.encode(corrected).decode()
        hint = f"Did you mean {nearest}? Send {shown if len(shown) <= 400 else '{' + nearest + ': …}'}"
    elif nearest and nearest not in given:
        hint = f"Did you mean {nearest}? {hint}"
    return e.ParameterUnknown(
        f"{operation.name} has no parameter {shown_name!r}",
        hint=hint,
        details={"parameter": shown_name, "nearest": nearest, "known": _listed(known)},
    )


def _nearest(name: str, known: Any) -> str | None:
    alias = _ALIASES.get(name)
    if alias is not None and alias in known:
        return alias
    found = process.extractOne(name, list(known), scorer=fuzz.ratio, score_cutoff=65)
    return str(found[0]) if found else None
