"""Whatever a plugin does, the rest goes on, and `status` says what happened."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestrator.core.ids import Seq
from orchestrator.core.policy.rules import Plugins
from orchestrator.extensions.hookspecs import AppliedChange
from orchestrator.extensions.manager import MOST_WAITING, Extensions
from tests.extensions.packages import put

pytestmark = pytest.mark.anyio

HOOK = "from orchestrator.extensions.hookspecs import hook\n"
CHANGE = AppliedChange(seq=Seq(9), at=1, agent="a", session="s", operation="edit_file", rung="current", paths=())


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        del sys.modules[name]


async def loaded(site: Path, *names: str, timeout_s: float = 60.0) -> Extensions:
    def found() -> Any:
        return [point for dist in distributions(path=[str(site)]) for point in dist.entry_points]

    extensions = Extensions(Plugins(enabled=names, timeout_s=timeout_s), found=found)
    await extensions.load()
    return extensions


async def test_only_what_is_enabled_is_imported(site: Path) -> None:
    put(site, "quiet", "raise SystemExit('imported')")
    assert (await loaded(site)).notes() == ()
    assert "quiet" not in sys.modules


@pytest.mark.parametrize(
    ("source", "says"),
    [
        pytest.param("import no_such_module", "no_such_module", id="import"),
        pytest.param("syntax error", "SyntaxError", id="syntax"),
        pytest.param("raise SystemExit(3)", "SystemExit", id="exit"),
        pytest.param(HOOK + "@hook\ndef orchestrator_no_such_hook(): pass", "no_such_hook", id="unknown hook"),
        pytest.param(
            HOOK + "@hook\ndef orchestrator_change_applied(change, more): pass", "more", id="unknown argument"
        ),
    ],
)
async def test_one_that_can_t_be_loaded_is_reported_and_left_out(site: Path, source: str, says: str) -> None:
    put(site, "broken", source)
    put(site, "sound", HOOK + "@hook\ndef orchestrator_change_applied(change): pass")
    extensions = await loaded(site, "broken", "sound", "missing")
    assert [(item.name, item.state) for item in extensions.states()] == [
        ("broken", "failed"),
        ("sound", "loaded"),
        ("missing", "failed"),
    ]
    assert says in extensions.notes()[0]
    assert "no installed package" in extensions.notes()[2]


async def test_two_of_one_name_are_none(site: Path) -> None:
    put(site, "one", "", points={"same": "one"})
    put(site, "two", "", points={"same": "two"})
    assert "several packages" in (await loaded(site, "same")).notes()[0]


async def test_a_slow_import_is_given_up_on(site: Path) -> None:
    put(site, "slow", "import threading; threading.Event().wait()")
    assert "not done in 0.2 s" in (await loaded(site, "slow", timeout_s=0.2)).notes()[0]


async def test_a_change_hook_that_fails_is_switched_off_and_the_others_hear_all(site: Path) -> None:
    put(site, "bad", HOOK + "@hook\ndef orchestrator_change_applied(change): raise ValueError('no')")
    put(site, "good", HOOK + "heard = []\n@hook\ndef orchestrator_change_applied(change): heard.append(change.seq)")
    extensions = await loaded(site, "bad", "good")
    heard = sys.modules["good"].heard
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(extensions.run)
        for _ in range(5):
            extensions.notify(CHANGE)
        with anyio.fail_after(60):
            while len(heard) < 5:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert "switched off, 3 failures in a row; ValueError: no" in extensions.notes()[0]
    assert extensions.states()[1].state == "loaded"


async def test_a_hook_that_hangs_holds_up_nobody(site: Path) -> None:
    put(
        site,
        "hangs",
        HOOK + "import threading\n@hook\ndef orchestrator_change_applied(change): threading.Event().wait()",
    )
    extensions = await loaded(site, "hangs", timeout_s=0.5)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(extensions.run)
        for _ in range(3):
            extensions.notify(CHANGE)
        with anyio.fail_after(60):
            while extensions.states()[0].state != "switched off":
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert all(thread.daemon for thread in threading.enumerate() if thread.name.startswith("plugin "))


async def test_what_waits_is_bounded_and_the_rest_is_counted(site: Path) -> None:
    put(site, "late", HOOK + "@hook\ndef orchestrator_change_applied(change): pass")
    extensions = await loaded(site, "late")
    for _ in range(MOST_WAITING + 4):
        extensions.notify(CHANGE)
    assert "not notified of 4 changes" in extensions.notes()[-1]
