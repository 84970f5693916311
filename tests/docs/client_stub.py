"""The Python client's methods as a stub for type checkers and editors, from the catalogue."""

from __future__ import annotations

import json
from inspect import Parameter, signature
from textwrap import fill, indent
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from orchestrator.api.operation import AnyOperation
from orchestrator.api.operations import OPERATIONS
from orchestrator.clients.operation_methods import OperationMethods
from tests.docs.documents import ROOT

STUB = ROOT / "orchestrator/clients/operation_methods.pyi"

HEAD = '''\
"""The operations as methods of the Python client. Written by `make docs` from the catalogue."""

{imports}

class OperationMethods:
    """One method for each operation: its parameters as arguments, its result typed."""

'''


def stub() -> str:
    """The whole file."""
    methods = "\n".join(map(_method, OPERATIONS))
    modules = {kind.__module__ for op in OPERATIONS for kind in (op.result, *_structs(op))}
    imports = ["from collections.abc import Sequence", "from typing import Literal", ""]
    imports += [f"import {module}" for module in sorted(modules)]
    return HEAD.format(imports="\n".join(imports)) + methods


def _method(operation: AnyOperation) -> str:
    kinds = get_type_hints(operation.struct)
    parameters = ["self"]
    for parameter in signature(getattr(OperationMethods, operation.name)).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is Parameter.KEYWORD_ONLY and "*" not in parameters:
            parameters.append("*")
        default = "" if parameter.default is Parameter.empty else f" = {_value(parameter.default)}"
        parameters.append(f"{parameter.name}: {_kind(kinds[parameter.name])}{default}")
    answer = f"{operation.result.__module__}.{operation.result.__qualname__}"
    head = f"    async def {operation.name}({', '.join(parameters)}) -> {answer}:"
    if len(head) > 120:
        rows = "".join(f"        {part},\n" for part in parameters)
        head = f"    async def {operation.name}(\n{rows}    ) -> {answer}:"
    return f"{head}\n{indent(_text(operation), ' ' * 8)}\n"


def _text(operation: AnyOperation) -> str:
    """The docstring: what the operation is for, and each parameter that is described."""
    reported = [
        f"{name}: {description}"
        for name, kind in get_type_hints(operation.struct, include_extras=True).items()
        for description in _descriptions(kind)
    ]
    summary = fill(operation.summary, 110)
    return (
        f'"""{summary}\n\n' + "\n".join(fill(line, 110, subsequent_indent="    ") for line in reported) + '\n"""'
        if reported
        else f'"""{summary}"""'
    )


def _descriptions(kind: object) -> list[str]:
    """The outermost description."""
    return [meta.description for meta in getattr(kind, "__metadata__", ())[::-1] if getattr(meta, "description", None)][
        :1
    ]


def _structs(operation: AnyOperation) -> list[type]:
    return [kind for hint in get_type_hints(operation.struct).values() for kind in _within(hint)]


def _within(hint: Any) -> list[type]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return [hint]
    return [kind for part in get_args(hint) for kind in _within(part)]


def _kind(hint: Any) -> str:
    """A type as source; a sequence for a tuple, since any will do."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return f"Literal[{', '.join(map(_value, parts))}]"
    if origin in (Union, UnionType):
        return " | ".join(map(_kind, parts))
    if origin is tuple:
        return f"Sequence[{_kind(parts[0])}]"
    if hint is NoneType:
        return "None"
    assert isinstance(hint, type), hint
    return hint.__qualname__ if hint.__module__ == "builtins" else f"{hint.__module__}.{hint.__qualname__}"


def _value(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)
