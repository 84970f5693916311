"""Every event there is, with whatever its fields may hold, comes back as it was."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.errors import JournalCorrupt, JournalTooNew
from orchestrator.core.events.base import Event
from orchestrator.core.events.codec import EVENTS, decode, decode_all, encode, tag_of
from tests.golden.samples import SAMPLES

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
"""What JSON holds, but for fractions."""


def anything(of: msgspec.inspect.Type) -> st.SearchStrategy[Any]:
    """Any value of a field's type."""
    match of:
        case msgspec.inspect.StructType(cls=cls, fields=fields):
            return st.builds(cls, **{field.name: anything(field.type) for field in fields})
        case msgspec.inspect.VarTupleType(item_type=item):
            return st.lists(anything(item), max_size=3).map(tuple)
        case msgspec.inspect.UnionType(types=types):
            return st.one_of(*map(anything, types))
        case msgspec.inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case msgspec.inspect.NoneType():
            return st.none()
        case msgspec.inspect.BoolType():
            return st.booleans()
        case msgspec.inspect.IntType(ge=least, le=most):
            return st.integers(-(2**63) if least is None else least, 2**63 - 1 if most is None else most)
        case msgspec.inspect.FloatType():
            return st.floats(allow_nan=False, allow_infinity=False)
        case msgspec.inspect.StrType():
            return st.text(max_size=20)
        case msgspec.inspect.DictType(value_type=msgspec.inspect.AnyType()):
            return st.dictionaries(st.text(max_size=5), JSON, max_size=3)
        case _:
            raise TypeError(f"say what a value of {of} looks like")


@pytest.mark.parametrize("event_type", [pytest.param(event, id=tag_of(event)) for event in EVENTS])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_encode_then_decode_is_identity(event_type: type[Event], data: st.DataObject) -> None:
    event = data.draw(anything(msgspec.inspect.type_info(event_type)))
    stored = encode(event)
    again = decode(stored, tag=tag_of(event), seq=1)
    assert again == event
    assert encode(again) == stored


@pytest.mark.parametrize(
    ("payload", "tag", "error", "words"),
    [
        pytest.param(b'{"event":"of_tomorrow"}', "of_tomorrow", JournalTooNew, "@7.*of_tomorrow", id="unknown kind"),
        pytest.param(b'{"event":"change_aborted"}', "change_aborted", JournalCorrupt, "@7.*change", id="no field"),
        pytest.param(b'{"event":', "change_aborted", JournalCorrupt, "@7.*truncated", id="cut"),
        pytest.param(b"\xff", "change_aborted", JournalCorrupt, "@7", id="not text"),
    ],
)
def test_what_cannot_be_read_names_its_place(payload: bytes, tag: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        decode(payload, tag=tag, seq=7)


ONE = b'{"event":"metadata_read","operation":"file_info","path":"a"}'
TAG = "metadata_read"


def test_many_at_once_are_what_each_is_alone() -> None:
    stored = [encode(event) for event in SAMPLES]
    tags = [tag_of(event) for event in SAMPLES]
    seqs = range(1, len(stored) + 1)
    assert decode_all(stored, tags=tags, seqs=seqs) == [
        decode(payload, tag=tag, seq=seq) for payload, tag, seq in zip(stored, tags, seqs, strict=True)
    ]
    assert decode_all([], tags=[], seqs=[]) == []


@pytest.mark.parametrize("damaged", [
    pytest.param(b"", id="empty"),
    pytest.param(ONE + b"," + ONE, id="two in one"),
    pytest.param(b'{"event":"metadata_read"}', id="no field"),
    pytest.param(ONE[:-1], id="cut"),
    pytest.param(b"\xff", id="not text"),
])  # fmt: skip
def test_among_many_the_damaged_one_is_named(damaged: bytes) -> None:
    with pytest.raises(JournalCorrupt, match="@6"):
        decode_all([ONE, damaged, ONE], tags=[TAG] * 3, seqs=[5, 6, 7])


def test_among_many_an_old_form_is_lifted() -> None:
    old = {"older": lambda data: {"event": TAG, "operation": data["did"], "path": "a"}}
    found = decode_all([ONE, b'{"event":"older","did":"file_info"}'], tags=[TAG, "older"], seqs=[1, 2], upcasts=old)
    assert found[0] == found[1]
