"""A person's yes to a read: for one version, until it runs out; and what was shown so can be edited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

ASKS = """
name = "asks"
default = "allow"

[limits]
granted_read_s = {granted_read_s}

[[rule]]
name = "with a yes"
agents = ["alice"]
actions = ["read", "search"]
paths = ["config"]
verdict = "ask"
reason = "a person looks at these"
"""

PATH = "config/app.toml"
TEXT = "".join(f"line {number}\n" for number in range(1, 9))
EDIT = [Replacement(search="line 3", replace="line three")]


def daemon_on(base: Path, *, granted_read_s: int = 3600) -> RunningDaemon:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(ASKS.format(granted_read_s=granted_read_s))
    (daemon.workspace / "config").mkdir()
    (daemon.workspace / PATH).write_text(TEXT)
    return daemon


async def asked(client: FileAccess, operation: str, **parameters: Any) -> str:
    """The number of the request that a read leads to."""
    with pytest.raises(RemoteError) as refused:
        await getattr(client, operation)(**parameters)
    assert (refused.value.code, refused.value.details["status"]) == ("approval_required", "waiting")
    number: str = refused.value.details["approval"]
    return number


READS = [
    pytest.param("read_file", {"path": PATH}, id="read_file"),
    pytest.param("read_lines", {"path": PATH}, id="read_lines"),
    pytest.param("get_overview", {"path": PATH}, id="get_overview"),
    pytest.param("get_excerpt", {"path": PATH}, id="get_excerpt"),
    pytest.param("summarize_file", {"path": PATH}, id="summarize_file"),
    pytest.param("read_enclosing", {"path": PATH, "line": 2}, id="read_enclosing"),
    pytest.param("read_content", {"path": PATH, "pattern": "line 7"}, id="read_content"),
    pytest.param("get_diff", {"path": PATH, "from_": "@0"}, id="get_diff"),
    pytest.param("search_content", {"pattern": "line 7", "path": PATH}, id="search_content"),
    pytest.param("blame", {"path": PATH}, id="blame"),
]


@pytest.mark.parametrize(("operation", "parameters"), READS)
async def test_the_same_call_shows_it_after_the_yes(base: Path, operation: str, parameters: dict[str, Any]) -> None:
    daemon = daemon_on(base)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client() as person, daemon.client("bob") as bob, daemon.client("alice") as alice:
            await bob.read_file(PATH)
            number = await asked(alice, operation, **parameters)
            assert await asked(alice, operation, **parameters) == number
            assert (await person.approvals_show(number)).shown_whole
            answer = await person.approve(number, approver=code)
            assert (answer.status, answer.success) == ("granted", True)
            for _ in range(2):  # a large file takes more calls than one
                await getattr(alice, operation)(**parameters)


async def test_await_change_shows_it_and_it_can_be_edited_then(base: Path) -> None:
    daemon = daemon_on(base)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client() as person, daemon.client("alice") as alice:
            waiting = await alice.edit_file(PATH, EDIT, request_id="r1")
            assert (waiting.status, waiting.diff) == ("waiting", None)
            assert waiting.approval is not None
            assert (await alice.await_change(waiting.approval, timeout_s=0)).status == "still_waiting"
            await person.approve(waiting.approval, approver=code, unseen=True)
            shown = await alice.await_change(waiting.approval)
            assert shown.status == "granted"
            assert "line 7" in (shown.shown or "")
            assert (await person.await_change(waiting.approval)).shown is None
            applied = await alice.edit_file(PATH, EDIT, request_id="r1")
            assert (applied.status, applied.rung) == ("applied", "current")
            again = [Replacement(search="line 4", replace="line four")]  # what it made of it is its own
            assert (await alice.edit_file(PATH, again)).status == "applied"
            written = await alice.write_file(PATH, "all new\n", mode="truncate")
            assert written.status == "applied"  # every line of it was seen, or is its own


async def test_a_yes_is_for_one_version_and_one_agent(base: Path) -> None:
    daemon = daemon_on(base)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client() as person, daemon.client("bob") as bob, daemon.client("alice") as alice:
            first = await asked(alice, "read_file", path=PATH)
            await person.approve(first, approver=code, unseen=True)
            seen = (await alice.read_file(PATH)).version_id
            await bob.edit_file(PATH, [Replacement(search="line 8", replace="line 8, secretly")])
            assert (await alice.read_file(PATH, at=seen)).total_lines == 8
            second = await asked(alice, "read_file", path=PATH)
            assert second != first
            assert await asked(alice, "get_diff", path=PATH, from_=seen) == second
            waiting = await alice.edit_file(PATH, EDIT)
            assert (waiting.status, waiting.approval) == ("waiting", second)
            assert "secretly" not in repr(waiting)


async def test_it_runs_out(base: Path) -> None:
    daemon = daemon_on(base, granted_read_s=1)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client() as person, daemon.client("alice") as alice:
            first = await asked(alice, "read_file", path=PATH)
            await person.approve(first, approver=code, unseen=True)
            async with person.subscribe(after=first, kinds=("approval_expired",)) as events:
                assert (await anext(aiter(events))).event["approval"] == int(first[1:])
            assert await asked(alice, "read_file", path=PATH) != first
            assert (await alice.await_change(first)).status == "expired"


NAMES = """
name = "names"
default = "allow"

[[rule]]
name = "names"
agents = ["alice"]
actions = ["list"]
paths = ["config/**"]
verdict = "ask"
"""


async def test_a_yes_to_a_folder_is_for_the_names_in_it(base: Path) -> None:
    daemon = daemon_on(base)
    (daemon.state_dir / "policy.toml").write_text(NAMES)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client() as person, daemon.client("alice") as alice:
            tree = await alice.list_files(recursive=True)
            assert ([entry.path for entry in tree.entries], tree.unlisted) == (["config"], 1)
            await person.approve(await asked(alice, "list_files", path="config"), approver=code, unseen=True)
            listed = await alice.list_files("config")
            assert ([entry.path for entry in listed.entries], listed.unlisted) == ([PATH], 0)
            assert (await alice.file_info(PATH)).exists
            (daemon.workspace / "config/later.toml").write_text("")
            assert (await alice.list_files("config")).total == 2


async def test_a_yes_outlives_a_restart(base: Path) -> None:
    daemon = daemon_on(base)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client() as person, daemon.client("alice") as alice:
            await person.approve(await asked(alice, "read_file", path=PATH), approver=code, unseen=True)
    with running(base):
        async with daemon.client("alice") as alice:
            assert (await alice.read_file(PATH)).total_lines == 8
