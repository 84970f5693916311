"""The operations as methods of the Python client, made from the catalogue.

Editors and type checkers read `operation_methods.pyi`, which `make docs` writes from the same catalogue.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import msgspec

from orchestrator.api.operations import OPERATIONS, Operation


class OperationMethods:
    """One method for each operation: its parameters as arguments, its result typed.

    The class that inherits them has `_call(operation, params)`.
    """


def _method(operation: Operation) -> Callable[..., Any]:
    signature = _signature(operation)

    async def method(self: Any, *given: Any, **named: Any) -> Any:
        values = signature.bind(self, *given, **named).arguments
        del values["self"]
        return await self._call(operation, operation.params(**values))

    method.__name__, method.__qualname__ = operation.name, f"OperationMethods.{operation.name}"
    method.__doc__ = operation.summary
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method


def _signature(operation: Operation) -> inspect.Signature:
    """Required parameters are positional, and so is a path where there are none; all others go by name."""
    fields = msgspec.structs.fields(operation.params)
    first = [field for field in fields if field.required] or [field for field in fields[:1] if field.name == "path"]
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for field in (*first, *(field for field in fields if field not in first)):
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if field in first else inspect.Parameter.KEYWORD_ONLY
        default = inspect.Parameter.empty if field.required else field.default
        parameters.append(inspect.Parameter(field.name, kind, default=default))
    return inspect.Signature(parameters, return_annotation=operation.result)


for _operation in OPERATIONS:
    setattr(OperationMethods, _operation.name, _method(_operation))
