"""The catalogue as Markdown: what LLM_FILE_ACCESS.md and docs/reference hold between their markers.

Pure functions over structs; a test compares the documents with them, and `make docs` writes them in.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable

import msgspec

from orchestrator.api.operation import AnyOperation
from orchestrator.api.operations import OPERATIONS, toolset
from orchestrator.api.parameters import FAR
from orchestrator.core.annotations import Mark, shape
from orchestrator.core.errors import ApproverError, CallerError, OperatorError, OrchestratorError
from orchestrator.core.events.base import Event, Outcome

WHO = ((CallerError, "caller"), (ApproverError, "approver"), (OperatorError, "operator"), (OrchestratorError, "us"))
"""Who must act on an error, by its base class; the first that fits."""

_SIMPLE = {
    msgspec.inspect.StrType: "text",
    msgspec.inspect.IntType: "integer",
    msgspec.inspect.FloatType: "number",
    msgspec.inspect.BoolType: "true/false",
    msgspec.inspect.NoneType: "null",
}

MEANINGS: dict[Outcome, str] = {
    "answered": "a read, search or listing that was answered",
    "applied": "a change that is on disk",
    "aborted": "a change that did not happen",
    "diverged": "a change that met somebody else's content",
    "refused": "a call that was refused, but not by policy",
    "denied": "a call that policy forbade, or an approval that a person refused",
    "waiting": "a change or read that waits for an approval",
    "granted": "an approval that a person gave",
    "expired": "an approval that is void",
    "conflict": "a change that could not be applied",
    "resolved": "a conflict that was resolved",
    "superseded": "a conflict that a later change superseded",
    "external": "an external change",
}


def tables(*, errors: Iterable[type[OrchestratorError]], events: Iterable[type[Event]]) -> dict[str, str]:
    """Every generated part of the documents, by the name in its markers."""
    return {
        "toolsets": toolsets_list(),
        "operations": operations_table(OPERATIONS),
        "parameters": parameter_tables(op for op in OPERATIONS if not op.operator_only),
        "people": operations_table((op for op in OPERATIONS if op.operator_only), people=True),
        "errors": errors_table(errors),
        "events": events_table(events),
        "outcomes": table(["outcome", "meaning"], ([f"`{name}`", text] for name, text in MEANINGS.items())),
    }


def toolsets_list() -> str:
    """The names of both toolsets; the full one without those of the core one."""
    core, full = ([operation.name for operation in toolset(name)] for name in ("core", "full"))
    further = [name for name in full if name not in core]
    return "".join(
        f"- {title}: {', '.join(f'`{name}`' for name in names)}\n"
        for title, names in (("core", core), ("full, also", further))
    )


def operations_table(operations: Iterable[AnyOperation], *, people: bool = False) -> str:
    """Name, parameters, answer, toolset and summary of each; people's operations only when asked for."""
    rows = []
    for operation in operations:
        if operation.operator_only != people:
            continue
        parameters = ", ".join(f"`{_signature(field)}`" for field in _fields(operation.struct)) or "–"
        row = [f"`{operation.name}`", operation.summary, parameters, f"`{operation.result.__name__}`"]
        if not people:
            row.append("core, full" if operation.core else "full" if operation.tool else "none (no tool)")
        rows.append(row)
    head = ["operation", "what it does", "parameters (default)", "answer"]
    return table(head if people else [*head, "toolset"], rows)


def parameter_tables(operations: Iterable[AnyOperation]) -> str:
    """For each operation a heading, its parameters one by one, and the codes of its refusals."""
    parts = []
    for operation in operations:
        parts.append(f"#### {operation.name}\n")
        rows = [
            [f"`{field.name}`", kind, default, _sentence(meaning).replace("*", "\\*")]
            for field, kind, default, meaning in _described(operation.struct)
        ]
        parts.append(table(["parameter", "type", "default", "meaning"], rows) if rows else "No parameters.\n")
        codes = ", ".join(f"`{code}`" for code in dict.fromkeys(error.code for error in operation.raises))
        if codes:
            parts.append(f"Refusals of its own: {codes}.\n")
    return "\n".join(parts)


def errors_table(errors: Iterable[type[OrchestratorError]]) -> str:
    """One row a code, sorted; of two classes that share a code, the one of core/errors.py speaks."""
    rows: dict[str, list[str]] = {}
    ours = OrchestratorError.__module__
    for error in sorted(errors, key=lambda found: (found.code, found.__module__ != ours, found.__name__)):
        who = next(name for base, name in WHO if issubclass(error, base))
        meaning = _sentence(inspect.getdoc(error) or "")
        rows.setdefault(error.code, [f"`{error.code}`", who, meaning, error.hint])
    return table(["code", "who must act", "what it means", "what to do, where nothing closer is said"], rows.values())


def events_table(events: Iterable[type[Event]]) -> str:
    """Tag, meaning and fields of each event, in the catalogue's order; fields that can be redacted are in italics."""
    rows = []
    for event in events:
        redactable = shape(event).marked[Mark.REDACTABLE]
        fields = [f"*{name}*" if name in redactable else name for name in event.__struct_fields__]
        tag = event.__struct_config__.tag
        rows.append([f"`{tag}`", _sentence(inspect.getdoc(event) or ""), ", ".join(fields)])
    return table(["kind", "what happened", "fields"], rows)


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    """A Markdown table, ended by a newline."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _described(params: type[msgspec.Struct]) -> list[tuple[msgspec.structs.FieldInfo, str, str, str]]:
    """Field, type, default and meaning; fields of a list's items follow as `name[].field`."""
    found = []
    for field in _fields(params):
        name = msgspec.structs.replace(field, name=field.encode_name)
        kind = msgspec.inspect.type_info(field.type)
        found.append((name, _shape(kind), _default(field), _meaning(kind)))
        item = _item(kind)
        if isinstance(item, msgspec.inspect.StructType):
            found.extend(
                (msgspec.structs.replace(inner, name=f"{field.encode_name}[].{inner.name}"), shape, default, meaning)
                for inner, shape, default, meaning in _described(item.cls)
            )
    return found


def _fields(params: type[msgspec.Struct]) -> list[msgspec.structs.FieldInfo]:
    """Required ones first, what every change can carry last."""
    last = ("preview", "reason", "request_id", "approver")
    return sorted(msgspec.structs.fields(params), key=lambda field: (not field.required, field.name in last))


def _signature(field: msgspec.structs.FieldInfo) -> str:
    default = _default(field)
    return field.encode_name if default == "required" else f"{field.encode_name} = {default.strip('`')}"


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = list(field.default) if isinstance(field.default, tuple) else field.default
    return f"`{msgspec.json.encode(value).decode()}`"


def _shape(kind: msgspec.inspect.Type) -> str:
    match kind:
        case msgspec.inspect.Metadata(type=inner):
            return _shape(inner)
        case msgspec.inspect.UnionType(types=types):
            return " or ".join(_shape(inner) for inner in types)
        case msgspec.inspect.LiteralType(values=values):
            return " / ".join(f'`"{value}"`' for value in values)
        case msgspec.inspect.VarTupleType(item_type=item, max_length=most):
            return f"list of {_shape(item)}, at most {most:,}"
        case msgspec.inspect.StructType():
            return "objects"
        case msgspec.inspect.IntType(ge=low, le=high) | msgspec.inspect.FloatType(ge=low, le=high):
            return _SIMPLE[type(kind)] + _bounds(low, high)
        case _:
            return _SIMPLE[type(kind)]


def _bounds(low: float | None, high: float | None) -> str:
    high = None if high is not None and high >= FAR else high
    match low, high:
        case None, None:
            return ""
        case _, None:
            return f" ≥ {low:,.10g}"
        case None, _:
            return f" ≤ {high:,.10g}"
        case _:
            return f" {low:,}–{high:,}"


def _meaning(kind: msgspec.inspect.Type) -> str:
    match kind:
        case msgspec.inspect.Metadata(extra_json_schema=dict(schema)) if "description" in schema:
            return str(schema["description"])
        case msgspec.inspect.Metadata(type=inner):
            return _meaning(inner)
        case msgspec.inspect.UnionType(types=types):
            return next((text for inner in types if (text := _meaning(inner))), "")
        case _:
            return ""


def _item(kind: msgspec.inspect.Type) -> msgspec.inspect.Type | None:
    match kind:
        case msgspec.inspect.Metadata(type=inner):
            return _item(inner)
        case msgspec.inspect.VarTupleType(item_type=item):
            return item
        case _:
            return None


def _sentence(text: str) -> str:
    """The first paragraph, on one line."""
    return " ".join(text.split("\n\n", 1)[0].split())
