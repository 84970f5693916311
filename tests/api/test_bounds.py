"""No parameter of the catalogue is without an upper bound, and what is over one is refused with the limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from orchestrator.api.failures import params_from, parse_params
from orchestrator.api.framing import SUBSCRIBE
from orchestrator.api.operations import BY_NAME, OPERATIONS
from orchestrator.core.errors import ParameterInvalid, ParameterUnknown


def parts(kind: inspect.Type, where: str) -> Iterator[tuple[str, inspect.Type]]:
    """A type and all types in it, each with where it stands."""
    match kind:
        case inspect.Metadata(type=inner):
            yield from parts(inner, where)
        case inspect.UnionType(types=types):
            for one in types:
                yield from parts(one, where)
        case inspect.StructType(fields=fields):
            for field in fields:
                yield from parts(field.type, f"{where}.{field.encode_name}")
        case inspect.VarTupleType(item_type=item):
            yield where, kind
            yield from parts(item, f"{where}[]")
        case _:
            yield where, kind


CATALOGUE = [
    pytest.param(kind, id=where)
    for operation in (*OPERATIONS, SUBSCRIBE)
    for where, kind in parts(inspect.type_info(operation.params), operation.name)
]


@pytest.mark.parametrize("kind", CATALOGUE)
def test_every_parameter_has_an_upper_bound(kind: inspect.Type) -> None:
    match kind:
        case inspect.VarTupleType(max_length=most):
            assert most is not None
        case inspect.StrType(max_length=most, pattern=pattern):
            assert most is not None or pattern is not None
        case inspect.IntType(le=most) | inspect.FloatType(le=most):
            assert most is not None
        case _:
            assert isinstance(kind, inspect.BoolType | inspect.NoneType | inspect.LiteralType)


@pytest.mark.parametrize(
    ("operation", "params", "where", "says"),
    [
        ("search_content", {"pattern": "x" * 10_001}, "pattern", "<= 10000"),
        ("list_files", {"globs": ["*.py"] * 101}, "globs", "<= 100"),
        ("find_files", {"glob": "a" * 1001}, "glob", "<= 1000"),
        ("list_files", {"globs": ["a" * 101] * 100}, "globs", "has 10,100 characters, of at most 10,000 in all"),
        ("find_files", {"glob": "{a,b}" * 100}, "globs", "braces stand for too many globs"),
        ("rollback", {"globs": ["a" * 1001]}, "globs[0]", "<= 1000"),
        ("edit_file", {"path": "a", "changes": [{"search": "a", "replace": "b"}] * 1001}, "changes", "<= 1000"),
        ("read_file", {"path": "a" * 16_385}, "path", "<= 16384"),
        ("read_file", {"path": "a", "start": 2**31}, "start", "<= 2147483647"),
        ("await_change", {"id": "@1", "timeout_s": 50.5}, "timeout_s", "<= 50"),
        ("policy_approve", {"digest": "sha256:1"}, "digest", "must be sha256: and 64 hex digits, as"),
        ("agent_add", {"name": "a b"}, "name", "must be letters, digits and"),
        ("changes_since", {"version": 2**63}, "version", "<= 9223372036854775807"),
    ],
)
def test_what_is_over_a_bound_is_refused_with_the_limit(
    operation: str, params: dict[str, Any], where: str, says: str
) -> None:
    with pytest.raises(ParameterInvalid, match=says) as refused:
        parse_params(BY_NAME[operation], msgspec.json.encode(params))
    assert refused.value.details == {"parameter": where}
    assert refused.value.hint


def test_a_thousand_changes_are_taken() -> None:
    changes = [{"search": f"line {n}\n", "replace": "x\n"} for n in range(1000)]
    params_from(BY_NAME["edit_file"], {"path": "a", "changes": changes})


def test_an_unknown_name_is_shown_in_part() -> None:
    with pytest.raises(ParameterUnknown) as refused:
        params_from(BY_NAME["read_file"], {"path": "a", "x" * 1_000_000: 1})
    assert len(str(refused.value)) < 1000
    assert len(str(refused.value.details)) < 1000
