"""Many large approvals: the list pages through them without their diffs, and each is shown whole."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from orchestrator.clients.python import RemoteError
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
    whole = cli(daemon, "--json", "--limit", "3")
    assert [item["approval"] for item in json.loads(whole)["approvals"]] == asked[:3]
    assert f"3 of 70; go on with --cursor {asked[2]}" in cli(daemon, "--limit", "3")


def cli(daemon: RunningDaemon, *options: str) -> str:
    command = [
        sys.executable,
        "-m",
        "orchestrator",
        "--workspace",
        str(daemon.workspace),
        "approvals",
        "list",
        *options,
    ]
    return subprocess.run(command, env=daemon.env, capture_output=True, text=True, check=True).stdout
