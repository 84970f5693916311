"""The signed bytes never change, a checkpoint file is read as it was written, and what is blanked stays readable."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.annotations import Mark, fields_with
from orchestrator.core.errors import CheckpointInvalid, NotRedactable
from orchestrator.core.events.base import Event
from orchestrator.core.events.chain import Checkpoint, message, parse_checkpoint
from orchestrator.core.events.codec import decode, encode, tag_of
from orchestrator.core.events.files import ChangeApplied
from orchestrator.core.events.visibility import REDACTED, blanked, fields_to_blank, texts_of
from orchestrator.core.ids import Seq
from tests.golden.samples import SAMPLES

JOURNAL, HASH, KEY, SIGNATURE = "1f" * 16, "0a" * 32, "0b" * 32, "0c" * 64


def test_the_signed_bytes() -> None:
    expected = b"orchestrator-checkpoint 1\njournal " + b"1f" * 16 + b"\nseq 42\nhash " + b"0a" * 32 + b"\n"
    assert message(JOURNAL, 42, HASH) == expected


@given(seq=st.integers(1, 2**62), at=st.integers(0, 2**50), key=st.binary(min_size=32, max_size=32))
def test_a_file_is_read_as_it_was_written(seq: int, at: int, key: bytes) -> None:
    made = Checkpoint(journal=JOURNAL, seq=Seq(seq), hash=HASH, key=key.hex(), signature=SIGNATURE, signed_at=at)
    assert parse_checkpoint(made.text()) == made


GOOD = {"format": "orchestrator-checkpoint", "version": 1, "journal": JOURNAL, "seq": 3, "hash": HASH, "key": KEY,
        "signature": SIGNATURE, "signed_at": 5}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"format": "x"}, r"'x' - at `\$\.format`", id="format"),
        pytest.param({"version": 2}, "version is 2", id="version"),
        pytest.param({"journal": "no"}, r"`\$\.journal`", id="journal"),
        pytest.param({"hash": HASH.upper()}, r"`\$\.hash`", id="hash"),
        pytest.param({"key": KEY + "00"}, r"`\$\.key`", id="key"),
        pytest.param({"signature": SIGNATURE + "\n"}, r"`\$\.signature`", id="signature"),
        pytest.param({"seq": 0}, r">= 1 - at `\$\.seq`", id="seq"),
        pytest.param({"seq": "3"}, "no checkpoint file", id="seq is text"),
        pytest.param({"hash": None}, "no checkpoint file", id="hash is null"),
    ],
)
def test_another_file_is_refused(change: dict[str, Any], said: str) -> None:
    assert parse_checkpoint(json.dumps(GOOD)).seq == 3
    with pytest.raises(CheckpointInvalid, match=said):
        parse_checkpoint(json.dumps({**GOOD, **change}))


def test_no_json() -> None:
    with pytest.raises(CheckpointInvalid):
        parse_checkpoint("hello")


def redactable(event: Event) -> tuple[str, ...]:
    return fields_with(type(event), Mark.REDACTABLE)


@pytest.mark.parametrize("event", [event for event in SAMPLES if dict(texts_of(event))], ids=tag_of)
def test_every_redactable_event_can_be_read_without_its_texts(event: Any) -> None:
    fields = fields_to_blank(Seq(1), event, ())
    assert fields == redactable(event), "the sample has a value in every field"
    rest = blanked(encode(event), fields)
    read = decode(rest, tag=tag_of(event), seq=1)
    assert dict(texts_of(read)) == {}
    back = encode(read)
    for _, text in texts_of(event):  # a list has several
        back = back.replace(REDACTED.encode(), msgspec.json.encode(text)[1:-1], 1)
    assert decode(back, tag=tag_of(event), seq=1) == event, "nothing else is blanked"
    assert encode(read) == rest
    with pytest.raises(NotRedactable):
        fields_to_blank(Seq(1), read, ())


@pytest.mark.parametrize("event", [event for event in SAMPLES if not dict(texts_of(event))], ids=tag_of)
def test_the_others_have_none(event: Any) -> None:
    assert not redactable(event) or isinstance(event, ChangeApplied), "the reason of a change stands in its intent"
    with pytest.raises(NotRedactable):
        fields_to_blank(Seq(1), event, ())


def test_a_change_names_the_event_that_holds_its_texts() -> None:
    applied = next(event for event in SAMPLES if isinstance(event, ChangeApplied))
    with pytest.raises(NotRedactable) as refused:
        fields_to_blank(Seq(9), applied, ())
    assert f"`orchestrator journal redact @{applied.change}`" in refused.value.hint
