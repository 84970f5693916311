"""Many large approvals: the list pages through them without their diffs."""

from __future__ import annotations

import json

import pytest

from orchestrator.clients.python import RemoteError, Replacement
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

TEXT = "x = 1234567\n" * 100_000
"""Over 1 MB."""


async def test_many_large_approvals_are_listed_by_pages(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice, daemon.client() as person:
        names = [f"{n:02}/Makefile" for n in range(70)]
        asked = [(await alice.write_file(name, TEXT, mode="create", reason=name)).approval for name in names]
        first = await person.approvals_list()
        assert (len(first.approvals), first.total) == (50, 70)
        rest = await person.approvals_list(cursor=first.cursor)
        assert rest.cursor is None
        listed = [*first.approvals, *rest.approvals]
        assert [item.approval for item in listed] == asked
        assert [(item.paths, item.path_count, item.reason) for item in listed] == [((n,), 1, n) for n in names]
        shown = await person.approvals_show(asked[0] or "")
        assert shown.diff is not None
        assert shown.diff.count("+x = 1234567\n") == 100_000
        with pytest.raises(RemoteError) as refused:
            await person.approvals_list(cursor="x")
        assert refused.value.code == "invalid_parameter"
    _, whole = cli(daemon, "approvals", "list", "--json", "--limit", "3")
    assert [item["approval"] for item in json.loads(whole)["approvals"]] == asked[:3]
    assert f"3 of 70; go on with --cursor {asked[2]}" in cli(daemon, "approvals", "list", "--limit", "3")[1]


async def test_an_approval_says_which_files_changed_since_it_was_asked_for(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice, daemon.client() as person:
        await alice.write_file("a.txt", "one\n", mode="create")
        await person.edit_file("a.txt", [Replacement(search="one", replace="two")])
        await alice.read_file("a.txt")
        asked = await alice.delete_file("a.txt")
        assert asked.approval is not None
        assert (await person.approvals_show(asked.approval)).changed_since == ()
        (daemon.workspace / "a.txt").write_text("three\n")
        await person.read_file("a.txt")
        assert (await person.approvals_show(asked.approval)).changed_since == ("a.txt",)
