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
from orchestrator.core.policy.rules import Plugins, PluginSettings
from orchestrator.extensions.hookspecs import AppliedChange
from orchestrator.extensions.manager import MOST_WAITING, Extensions
from orchestrator.machine import SystemClock
from orchestrator.ports.reviewers import (
    RegionText,
    ReviewerTimeout,
    ReviewerUnusable,
    ReviewFailure,
    ReviewReplyInvalid,
)
from orchestrator.review.checked import CheckedReviewer
from orchestrator.review.reviewer_pool import plugin_reviewer
from tests.extensions.packages import put, put_shipped
from tests.review.conflicts import SECRET, conflict

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


async def loaded(site: Path, *names: str, timeout_s: float = 20.0) -> Extensions:
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
        with anyio.fail_after(20):
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
        with anyio.fail_after(20):
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


# --- reviewers out of plugins -----------------------------------------------------------

REVIEWER = (
    HOOK + "from orchestrator.ports.reviewers import *\nimport threading\n"
    "class R:\n    async def review(self, request):\n        {}\n"
    "@hook\ndef orchestrator_reviewer(): return R\n"
)


async def fenced(site: Path, body: str, timeout_s: float = 20.0) -> CheckedReviewer:
    put(site, "plugged", REVIEWER.format(body))
    settings = PluginSettings(name="r", plugin="plugged", timeout_s=timeout_s)
    return plugin_reviewer(settings, await loaded(site, "plugged"), clock=SystemClock())


async def test_its_answer_is_checked_and_secrets_stay_hidden_from_it(site: Path) -> None:
    body = (
        "assert 'ghp_' not in repr(request); "
        "return ReviewReply(verdict='content', "
        "regions=tuple(RegionText(r.number, r.current) for r in request.regions))"
    )
    reply = await (await fenced(site, body)).review(conflict(secret=True))
    assert reply.regions[0] == RegionText(1, ("limit = 2", f"token = '{SECRET}'"))


@pytest.mark.parametrize(
    ("body", "error", "says"),
    [
        pytest.param("raise ValueError('x')", ReviewFailure, "ValueError", id="fails"),
        pytest.param("raise SystemExit(1)", ReviewFailure, "SystemExit", id="exits"),
        pytest.param("raise ReviewFailure('not today')", ReviewFailure, "not today", id="says no"),
        pytest.param("return 'yes'", ReviewReplyInvalid, "str", id="no reply"),
        pytest.param(
            "return ReviewReply(verdict='content', regions=(RegionText(5, ()),))",
            ReviewReplyInvalid,
            "no region 5",
            id="wrong region",
        ),
        pytest.param("return ReviewReply(verdict='content')", ReviewReplyInvalid, "lacks", id="no regions"),
        pytest.param("threading.Event().wait()", ReviewerTimeout, "0.5 s", id="blocks"),
    ],
)
async def test_what_comes_out_is_a_failure(site: Path, body: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        await (await fenced(site, body, 0.5 if "wait" in body else 20.0)).review(conflict())


@pytest.mark.parametrize("raised", ["asyncio.CancelledError()", "TimeoutError()", "KeyboardInterrupt()"])
async def test_what_it_raises_is_never_taken_for_our_own(site: Path, raised: str) -> None:
    inner = await fenced(site, f"import asyncio; raise {raised}")
    with anyio.CancelScope() as scope, pytest.raises(ReviewFailure, match="failed") as caught:
        await inner.review(conflict())
    assert not scope.cancelled_caught
    assert type(caught.value) is ReviewFailure


async def test_our_own_cancellation_goes_through(site: Path) -> None:
    inner = await fenced(site, "threading.Event().wait()")
    with anyio.move_on_after(0.2) as scope:
        await inner.review(conflict())
    assert scope.cancelled_caught


async def test_one_that_is_not_loaded(site: Path) -> None:
    settings = PluginSettings(name="r", plugin="absent")
    with pytest.raises(ReviewerUnusable, match="absent"):
        await plugin_reviewer(settings, await loaded(site), clock=SystemClock()).review(conflict())


async def test_a_plugin_without_a_reviewer(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHANGE_LOG_FILE", str(tmp_path / "log"))
    put_shipped(site, "change_log")
    settings = PluginSettings(name="r", plugin="change_log")
    with pytest.raises(ReviewerUnusable, match="has none"):
        await plugin_reviewer(settings, await loaded(site, "change_log"), clock=SystemClock()).review(conflict())
