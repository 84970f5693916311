"""Stored forms of earlier releases are read as what they became: the mechanism, on tags that never were.

A real retired tag gets its sample into `retired/`, beside the present event's, and an entry in LIFTED.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.errors import JournalCorrupt, JournalTooNew
from orchestrator.core.events.base import Event
from orchestrator.core.events.codec import EVENTS, UPCASTS, Upcast, decode, tag_of, upcast
from orchestrator.core.events.files import MetadataRead
from orchestrator.core.ids import EscapedPath

HERE = Path(__file__).parent
RETIRED = HERE / "retired"


def _looked_to_noted(data: dict[str, Any]) -> dict[str, Any]:
    """`what` and `where` became one text."""
    return {"event": "example_noted", "text": f"{data['what']} {data['where']}"}


def _noted_to_inspected(data: dict[str, Any]) -> dict[str, Any]:
    operation, _, path = data["text"].partition(" ")
    return {"event": "metadata_read", "operation": operation, "path": path}


EXAMPLE: Mapping[str, Upcast] = {"example_looked": _looked_to_noted, "example_noted": _noted_to_inspected}

LIFTED: dict[str, tuple[Event, Mapping[str, Upcast]]] = {
    "example_looked.v1.json": (MetadataRead(operation="file_info", path=EscapedPath("src/größe.py")), EXAMPLE),
    "example_noted.v1.json": (MetadataRead(operation="file_info", path=EscapedPath("src/größe.py")), EXAMPLE),
}
"""Stored sample → what it is read as today, and by which steps."""


def test_every_stored_form_is_looked_at() -> None:
    assert {path.name for path in RETIRED.iterdir()} == LIFTED.keys()


def test_every_retired_tag_has_a_sample_and_is_no_present_one() -> None:
    assert not UPCASTS.keys() & set(map(tag_of, EVENTS))
    assert UPCASTS.keys() <= {name.partition(".")[0] for name in LIFTED}


@pytest.mark.parametrize("name", LIFTED)
def test_an_old_form_is_lifted_step_by_step(name: str) -> None:
    event, steps = LIFTED[name]
    stored = (RETIRED / name).read_bytes().removesuffix(b"\n")
    assert decode(stored, tag=name.partition(".")[0], seq=1, upcasts=steps) == event


@pytest.mark.parametrize("name", LIFTED)
def test_a_step_is_pure(name: str) -> None:
    _, steps = LIFTED[name]
    stored = (RETIRED / name).read_bytes().removesuffix(b"\n")
    tag = name.partition(".")[0]
    assert upcast(tag, stored, steps) == upcast(tag, stored, steps)


def test_without_its_step_an_old_tag_is_refused_with_its_place() -> None:
    stored = (RETIRED / "example_noted.v1.json").read_bytes()
    with pytest.raises(JournalTooNew, match=r"event @7 is of kind 'example_noted'"):
        decode(stored, tag="example_noted", seq=7)


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        pytest.param({"example_noted": lambda data: {}}, "no tag", id="nowhere"),
        pytest.param({"example_noted": lambda data: {"event": "metadata_read"}}, "operation", id="half an event"),
        pytest.param({"example_noted": lambda data: {"event": "future"}}, "future", id="to a tag that is not"),
    ],
)
def test_a_step_that_is_wrong_is_reported_with_its_place(steps: Mapping[str, Upcast], problem: str) -> None:
    stored = (RETIRED / "example_noted.v1.json").read_bytes()
    with pytest.raises(JournalCorrupt, match=f"(?s)@7.*{problem}"):
        decode(stored, tag="example_noted", seq=7, upcasts=steps)
