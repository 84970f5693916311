"""Summaries by a plugin: what it is given, what is shown and remembered of it, and what becomes of its failures."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.servers.blocks import text_block
from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon
from tests.extensions.packages import put

pytestmark = pytest.mark.anyio

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
PLUGIN = """
import json
import threading
from pathlib import Path
from orchestrator.extensions.hookspecs import hook

@hook
def orchestrator_summarize(path, text, max_tokens):
    with Path({calls!r}).open("a") as calls:
        calls.write(json.dumps([path, text, max_tokens]) + "\\n")
    if "hang" in text:
        threading.Event().wait()
    if "number" in text:
        return 7
    if "raise" in text:
        raise ValueError("no model")
    if "quiet" in text:
        return None
    if "long" in text:
        return "words and words\\n" * 1000
    return f"It is about {{path}}.\\n"
"""


class Plugged(RunningDaemon):
    """A daemon with a folder of packages on its path."""

    @property
    def env(self) -> dict[str, str]:
        return {**super().env, "PYTHONPATH": os.pathsep.join((os.getcwd(), str(self.base / "site")))}

    def calls(self) -> list[Any]:
        """What the plugin was given."""
        file = self.base / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def timeout_s() -> int:
    return 60


@pytest.fixture
def plugged(base: Path, timeout_s: int) -> Iterator[Plugged]:
    put(base / "site", "teller", PLUGIN.format(calls=str(base / "calls")))
    daemon = Plugged(base)
    policy = f'name = "ours"\nextends = "default"\n[plugins]\nenabled = ["teller"]\ntimeout_s = {timeout_s}\n'
    (daemon.state_dir / "policy.toml").write_text(policy)
    assert daemon.start().get("ok") is True
    yield daemon
    daemon.stop()


async def test_a_summary_is_the_plugins_and_remembered(plugged: Plugged) -> None:
    text = f"def f():\n    return '{TOKEN}'\n"
    (plugged.workspace / "a.py").write_text(text)
    async with plugged.client("alice") as alice, plugged.client() as person:
        first = await alice.summarize_file("a.py")
        assert (first.text, first.by, first.symbols, first.warnings) == ("It is about a.py.\n", "teller 1.0", 1, ())
        assert "summary by plugin teller 1.0" in str(text_block(first))
        assert await alice.summarize_file("a.py") == first
        await person.summarize_file("a.py")
        [(path, given, tokens)] = plugged.calls()  # a person's call gives it no more than an agent's
        assert (path, tokens) == ("a.py", 400)
        assert given != text
        assert TOKEN not in given
        assert not (await alice.session_status()).recent_reads, "no line was shown"

        await alice.summarize_file("a.py", max_tokens=300)
        (plugged.workspace / "a.py").write_text("def g(): ...\n")
        await alice.summarize_file("a.py")
        assert len(plugged.calls()) == 3
        assert command(plugged, "cache", "clear")[0] == 0
        await alice.summarize_file("a.py")
        assert len(plugged.calls()) == 4


async def test_a_plugin_that_says_nothing_or_too_much(plugged: Plugged) -> None:
    (plugged.workspace / "quiet.py").write_text("# quiet\ndef f(): ...\n")
    (plugged.workspace / "long.py").write_text("# long\n")
    async with plugged.client("alice") as alice:
        quiet = await alice.summarize_file("quiet.py")
        assert (quiet.by, quiet.warnings) == (None, ())
        assert "def f" in quiet.text
        long = await alice.summarize_file("long.py", max_tokens=100)
        assert long.by == "teller 1.0"
        assert 5 < long.text.count("words and words\n") < 30


@pytest.mark.parametrize(
    ("word", "says", "timeout_s"),
    [
        pytest.param("raise", "ValueError: no model", 60, id="it raises"),
        pytest.param("hang", "not done in 2 s", 2, id="it hangs"),
        pytest.param("number", "no text, but int", 60, id="it returns no text"),
    ],
)
async def test_after_a_failure_the_built_in_summary_is_shown(plugged: Plugged, word: str, says: str) -> None:
    (plugged.workspace / "a.py").write_text(f"# {word}\ndef f(): ...\n")
    async with plugged.client("alice") as alice:
        for _ in range(3):
            told = await alice.summarize_file("a.py")
            assert "def f" in told.text
            assert told.by is None
            assert says in told.warnings[0]
        assert (await alice.summarize_file("a.py")).warnings == ()  # it is off now
    assert len(plugged.calls()) == 3
    _, status = command(plugged, "status")
    assert any("teller: switched off, 3 failures in a row" in note for note in status["health"]["notes"])
