"""Nothing that the command line prints holds a character that paints, hides or reorders text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.core.characters import shows
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon, running

INVISIBLE = "\x7f\x9b\x85\u3164\uffa0\u115f\u2800\u200b\u202e\u2028\U000e0041"
"""DEL, C1 controls (CSI and NEL), Hangul fillers, a braille blank, a zero-width space, an override, a tag."""

NAME = "a\u3164b\u2800.txt"
"""A name that the name rule lets pass."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    base = tmp_path_factory.mktemp("printed")
    (base / "work").mkdir(mode=0o700)
    (base / "work" / NAME).write_text(f"one {INVISIBLE} two\n")
    with running(base) as daemon:
        new = f"three {INVISIBLE}"
        assert "applied" in cli(daemon, "edit", NAME, "--search", "one", "--replace", new, "--reason", INVISIBLE)[1]
        yield daemon


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "JSON"])
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("files",), id="a listing"),
        pytest.param(("open", NAME), id="a file"),
        pytest.param(("search", "three"), id="a search"),
        pytest.param(("search", INVISIBLE), id="a search for them"),
        pytest.param(("log", NAME), id="a history"),
        pytest.param(("blame", NAME), id="blame"),
        pytest.param(("overview", NAME), id="an outline"),
        pytest.param(("around", NAME, "1"), id="what is around a line"),
        pytest.param(("journal", "query"), id="events"),
        pytest.param(("journal", "export"), id="an export"),
        pytest.param(("open", f"absent{INVISIBLE}"), id="a refusal"),
        pytest.param((f"no-such-{INVISIBLE}",), id="wrong usage"),
    ],
)
def test_every_printed_character_shows(
    daemon: RunningDaemon, arguments: tuple[str, ...], form: tuple[str, ...]
) -> None:
    _, printed = cli(daemon, *arguments, *form)
    assert printed
    assert [c for c in printed if not shows(c) and c not in "\n\t"] == []


def test_json_holds_the_same_text(daemon: RunningDaemon) -> None:
    text = json.loads(cli(daemon, "open", NAME, "--json")[1])["text"]
    assert text == (Path(daemon.workspace) / NAME).read_text()
    assert set(INVISIBLE) <= set(text)
