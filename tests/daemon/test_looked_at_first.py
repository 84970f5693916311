"""Changes that would apply, and that policy has reviewed first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.api.results import ChangeAnswer
from orchestrator.clients.python import FileAccess, Replacement
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.reviewer_servers import final, follow, one, reviewed, route

pytestmark = pytest.mark.anyio

SHOP = """\
class Shop:
    def close(self):
        first = [1]
        second = 2
        third = 3
        fourth = [4]
        return first


def main():
    return Shop()
"""
FIRST, FOURTH = "first = [1]", "fourth = [4]"
MAIN = "return Shop()"
HERS = SHOP.replace(FIRST, "first = [0]")
BOTH = HERS.replace(FOURTH, "fourth = [5]")
FLAGGED = "same_symbol = true\n"
STALE = '[edits]\nstale_reads = "review"\n'
MINE = {"verdict": "proposed", "reason": "they do not touch each other"}


async def change(files: FileAccess, search: str, replace: str, base: str | None = None) -> ChangeAnswer:
    return await files.edit_file("shop.py", [Replacement(search=search, replace=replace)], base=base)


async def behind(
    daemon: RunningDaemon, alice: FileAccess, bob: FileAccess, search: str = FOURTH, replace: str = "fourth = [5]"
) -> ChangeAnswer:
    """Alice changes the function's first line; bob, who has read before, its fourth, or another function."""
    (daemon.workspace / "shop.py").write_text(SHOP)
    seen = await bob.read_file("shop.py")
    await alice.read_file("shop.py")
    await change(alice, FIRST, "first = [0]")
    return await change(bob, search, replace, base=seen.version_id)


@pytest.mark.parametrize(
    ("policy", "search", "replace", "why"),
    [
        pytest.param(
            route("quick") + FLAGGED,
            FOURTH,
            "fourth = [5]",
            "it would apply, but both sides changed Shop.close since the base",
            id="one function",
        ),
        pytest.param(
            STALE + route("quick"),
            MAIN,
            "return None",
            "it would apply, but its author has not seen that alice changed lines 3-3 of shop.py",
            id="stale reads",
        ),
    ],
)
async def test_a_reviewer_looks_first(base: Path, policy: str, search: str, replace: str, why: str) -> None:
    with reviewed(base, policy, {"quick": [MINE]}) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            waits = await behind(daemon, alice, bob, search, replace)
            assert waits.status == "conflict"
            assert (await final(bob, waits.conflict or "")).status == "applied"
            assert (daemon.workspace / "shop.py").read_text() == HERS.replace(search, replace)
            (asked,) = daemon.asked()
            assert asked["why"].startswith(why)
            assert asked["language"] == "python"
            (region,) = asked["regions"]
            before = next(line for line in SHOP.splitlines() if search in line)
            assert (region["current"], region["proposed"]) == ([before], [before.replace(search, replace)])
            assert (await person.journal_rebuild()).ok


async def test_with_no_route_a_person_does(base: Path) -> None:
    with reviewed(base, STALE, {}) as daemon:
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            waits = await behind(daemon, alice, bob, MAIN, "return None")
            assert waits.status == "conflict"
            assert [(u.path, u.start, u.by) for u in waits.unseen] == [("shop.py", 3, ("alice",))]
            assert "its author has not seen that alice changed lines 3-3" in waits.message
            (reported,) = await follow(person, "conflict_found")
            assert "fit" in reported, "it would apply"
            resolved = await person.resolve_conflict(waits.conflict or "", "proposed", approver=code)
            assert resolved.status == "applied"
            assert (daemon.workspace / "shop.py").read_text() == HERS.replace(MAIN, "return None")


async def test_who_has_seen_all_is_not_held_up(base: Path) -> None:
    with reviewed(base, STALE, {}) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob:
            await behind(daemon, alice, bob)
            await bob.read_file("shop.py")
            assert (await change(bob, FOURTH, "fourth = [6]")).status == "applied"


async def test_while_it_waits_it_moves_along_with_its_file(base: Path) -> None:
    """It stays a change to be looked at, on top of what others do meanwhile."""
    with reviewed(base, route("person") + FLAGGED, {}) as daemon:
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            waits = await behind(daemon, alice, bob)
            await change(alice, "    return Shop()", "    shop = Shop()\n    return shop")
            await follow(person, "conflict_rebased")
            info = await one(person)
            assert (info.conflict, info.state) == (waits.conflict, "found")
            resolved = await person.resolve_conflict(waits.conflict or "", "proposed", approver=code)
            assert resolved.status == "applied"
            expected = BOTH.replace("    return Shop()", "    shop = Shop()\n    return shop")
            assert (daemon.workspace / "shop.py").read_text() == expected


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        pytest.param(["        fourth = [5"], "does_not_parse", id="broken"),
        pytest.param(["        fourth = 5"], "", id="whole"),
    ],
)
async def test_what_a_reviewer_writes_must_parse(base: Path, lines: list[str], code: str) -> None:
    answer: dict[str, Any] = {"verdict": "content", "lines": {"1": lines}}
    with reviewed(base, STALE + route("quick"), {"quick": [answer]}) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            waits = await behind(daemon, alice, bob)
            if code:
                assert (await follow(person, "review_failed"))[0]["code"] == code
                assert (daemon.workspace / "shop.py").read_text() == HERS
            else:
                assert (await final(bob, waits.conflict or "")).status == "applied"
