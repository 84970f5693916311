"""Of an event of every type, with a value in every field, nothing is forgotten by whoever computes from its type."""

from __future__ import annotations

import re
from functools import partial
from operator import ne

import msgspec
import pytest

from orchestrator.core.annotations import Mark, brought_by, contents_of, fields_with, gone_from, paths_of, shape
from orchestrator.core.events.base import Event, Origin, Recorded
from orchestrator.core.events.codec import CHANGE_TAGS, EVENTS, decode, encode, outcome_of, tag_of, tags_with
from orchestrator.core.events.visibility import REDACTED, blanked, texts_of, visible, without_paths
from orchestrator.core.ids import Seq, WorkspacePath
from orchestrator.core.projections.versions import history
from orchestrator.engine.record.audit import about
from tests.core.events.filled_events import Filled, Filler
from tests.docs.reference import MEANINGS
from tests.golden.samples import SAMPLES

ALL = [pytest.param(Filler().event(kind), id=tag_of(kind)) for kind in EVENTS]
every_event = pytest.mark.parametrize("filled", ALL)


def recorded(event: Event, stream: str = "session:s") -> Recorded:
    return Recorded(
        seq=Seq(7),
        at=1,
        stream=stream,
        stream_version=1,
        origin=Origin(),
        event=event,
        payload_hash=b"",
        prev_hash=b"",
        hash=b"",
    )


@every_event
def test_it_is_stored_and_read_again(filled: Filled) -> None:
    assert decode(encode(filled.event), tag=tag_of(filled.event), seq=1) == filled.event


@every_event
def test_search_finds_it_by_each_of_its_paths(filled: Filled) -> None:
    assert set(paths_of(filled.event)) == filled.paths
    item, payload = recorded(filled.event), encode(filled.event)
    for path in filled.paths:
        assert about(item, WorkspacePath(path))
        assert msgspec.json.encode(path) in payload, "what the journal looks for in the stored bytes"
    assert not about(item, WorkspacePath("folder"))


@every_event
def test_each_content_is_needed_or_gone(filled: Filled) -> None:
    gone = set(gone_from(filled.event))
    assert gone == set(filled.marked[Mark.GONE])
    assert set(contents_of(filled.event)) == filled.data.keys() - gone
    assert {content.digest for content in brought_by(filled.event)} == set(filled.marked[Mark.BROUGHT])
    assert {content.digest for content in brought_by(filled.event) if content.kept} == filled.kept
    assert gone.isdisjoint(filled.kept)


@every_event
def test_redaction_reaches_each_of_its_texts(filled: Filled) -> None:
    texts = filled.marked[Mark.REDACTABLE]
    assert sorted(text for _, text in texts_of(filled.event)) == sorted(texts)
    rest = blanked(encode(filled.event), fields_with(type(filled.event), Mark.REDACTABLE))
    assert all(text.encode() not in rest for text in texts)
    left = decode(rest, tag=tag_of(filled.event), seq=1)
    assert rest.count(REDACTED.encode()) == len(texts)
    assert list(texts_of(left)) == []


@every_event
def test_who_may_read_nothing_sees_no_content(filled: Filled) -> None:
    shown = msgspec.json.encode(visible(filled.event, "session:s", lambda path: False))
    whole = msgspec.json.encode(visible(filled.event, "session:s", lambda path: True))
    for secret in filled.marked[Mark.SECRET]:
        assert secret.encode() not in whole
    for report in filled.reports:
        assert report.text.encode() in whole
        assert (report.text.encode() in shown) == (not report.paths)


@every_event
def test_one_path_that_may_not_be_read_hides_what_depends_on_it(filled: Filled) -> None:
    for hidden in filled.paths:
        shown = msgspec.json.encode(visible(filled.event, "session:s", partial(ne, hidden)))
        for report in filled.reports:
            assert report.text.encode() not in shown or hidden not in report.paths


@every_event
def test_a_stream_about_a_hidden_file_hides_the_event_s_own_members(filled: Filled) -> None:
    shown = visible(filled.event, "conflict:secret", lambda path: path != "secret")
    known = shape(type(filled.event)).marked
    assert shown.keys().isdisjoint((*known[Mark.CONTENT], *known[Mark.REVEALING]))


@every_event
def test_a_path_that_may_not_be_listed_is_nowhere_in_it(filled: Filled) -> None:
    for hidden in filled.paths:
        left = without_paths(filled.event, partial(ne, hidden))
        assert left is None or hidden.encode() not in encode(left)
    assert without_paths(filled.event, lambda path: True) is filled.event


@every_event
def test_what_gives_a_file_another_content_is_reported_to_others(filled: Filled) -> None:
    files = re.sub(rb'"directory":"\w+"', b'"directory":null', encode(filled.event))
    rows = list(history(recorded(decode(files, tag=tag_of(filled.event), seq=1))))
    found = tag_of(filled.event) == "files_found"  # the daemon looked for the first time: nobody changed it
    assert bool(rows) == (tag_of(filled.event) in CHANGE_TAGS or found)
    assert not rows or filled.data, "verification looks for versions where contents are named"


@every_event
def test_its_outcome_has_a_meaning(filled: Filled) -> None:
    outcome = outcome_of(filled.event)
    if outcome is None:
        assert type(filled.event).outcomes == ()
    else:
        assert outcome in MEANINGS
        assert tag_of(filled.event) in tags_with(outcome)


WITH_CHECKSUM = ("policy_loaded", "policy_rejected", "segment_archived", "approval_shown", "approval_granted")


@pytest.mark.parametrize("event", [pytest.param(event, id=tag_of(event)) for event in SAMPLES])
def test_no_path_and_no_content_is_in_a_field_of_another_type(event: Event) -> None:
    """Of the samples, which hold what the fields hold in life."""
    known = {path for sample in SAMPLES for path in paths_of(sample)} - {"."}
    named, contents = set(paths_of(event)), {*contents_of(event), *gone_from(event)}
    for text in _strings(msgspec.to_builtins(event)):
        assert text not in known or text in named
        assert not text.startswith("sha256:") or text in contents or tag_of(event) in WITH_CHECKSUM


def _strings(plain: object) -> list[str]:
    if isinstance(plain, dict):
        return [text for value in plain.values() for text in _strings(value)]
    if isinstance(plain, list | tuple):
        return [text for value in plain for text in _strings(value)]
    return [plain] if isinstance(plain, str) else []
