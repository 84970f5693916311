"""The operations as methods of the Python client, made from the catalogue.

Editors and type checkers read `operation_methods.pyi`, which `make docs` writes from the same catalogue.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from orchestrator.api.operation import AnyOperation
from orchestrator.api.operations import OPERATIONS


class OperationMethods:
    """One method for each operation: its parameters as arguments, its result typed.

    The class that inherits them has `_call(operation, params)`.
    """


def _method(operation: AnyOperation) -> Callable[..., Any]:
    async def method(self: Any, *given: Any, **named: Any) -> Any:
        return await self._call(operation, operation.params(*given, **named))

    caller = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = inspect.signature(operation.params).parameters.values()
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in given]  # the stub has the types
    method.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [caller, *plain], return_annotation=operation.result
    )
    method.__name__, method.__qualname__ = operation.name, f"OperationMethods.{operation.name}"
    method.__doc__ = operation.summary
    return method


for _operation in OPERATIONS:
    setattr(OperationMethods, _operation.name, _method(_operation))
