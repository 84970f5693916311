"""Choices for a conflict, made while its file went on: they land on what was looked at, or are refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from orchestrator.api.conflicts import ConflictInfo
from orchestrator.api.results import ChangeAnswer
from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.cli import run, shown
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.reviewer_servers import BOTH, answered, conflict, follow, one, reviewed, route

pytestmark = pytest.mark.anyio

LINES = "".join(f"line {number}\n" for number in range(1, 41))
Side = Literal["current", "proposed"]


class DisputedConflict:
    """Bob's change waits against alice's; carol works on the same file."""

    def __init__(self, daemon: RunningDaemon, code: str, *clients: FileAccess) -> None:
        self.daemon, self.code = daemon, code
        self.alice, self.bob, self.carol, self.person = clients
        self.conflict = ""
        self.moves = 0

    async def begin(self, *numbers: int, text: str = LINES) -> ConflictInfo:
        """They clash at these lines; what a person sees of it."""
        await self.alice.write_file("a.txt", text, mode="create")
        await self.bob.read_file("a.txt")
        done = await self.alice.edit_file("a.txt", [_by("alice", number) for number in numbers])
        assert done.status == "applied"
        late = await self.bob.edit_file("a.txt", [_by("bob", number) for number in numbers])
        assert late.status == "conflict"
        self.conflict = late.conflict or ""
        return await one(self.person)

    async def moves_on(self, search: str, replace: str) -> None:
        """Carol changes the file, and the conflict has followed it."""
        await self.carol.read_file("a.txt")
        done = await self.carol.edit_file("a.txt", [Replacement(search=search, replace=replace)])
        assert done.status == "applied", done
        await self.followed()

    async def followed(self) -> None:
        self.moves += 1
        await follow(self.person, "conflict_rebased", self.moves)

    async def resolve(self, choice: str, **more: Any) -> ChangeAnswer:
        return await self.person.resolve_conflict(self.conflict, choice, approver=self.code, **more)  # type: ignore[arg-type]

    async def refused(self, choice: str, **more: Any) -> str:
        """The code of the refusal, which leaves file and conflict as they are."""
        held = self.text
        with pytest.raises(RemoteError) as error:
            await self.resolve(choice, **more)
        assert self.text == held
        assert (await one(self.person)).conflict == self.conflict
        return error.value.code

    @property
    def text(self) -> bytes:
        return (self.daemon.workspace / "a.txt").read_bytes()


def _by(agent: str, number: int) -> Replacement:
    return Replacement(search=f"line {number}\n", replace=f"line {number} {agent}\n")


def lines(**changed: str) -> bytes:
    """The file with these lines by somebody: `line_2="alice"`."""
    text = LINES
    for name, agent in changed.items():
        line = name.replace("_", " ")
        text = text.replace(f"{line}\n", f"{line} {agent}\n")
    return text.encode()


@asynccontextmanager
async def disputed(base: Path) -> AsyncIterator[DisputedConflict]:
    with running(base) as daemon:
        code = await daemon.make_approver()
        async with (
            daemon.client("alice") as alice,
            daemon.client("bob") as bob,
            daemon.client("carol") as carol,
            daemon.client() as person,
        ):
            yield DisputedConflict(daemon, code, alice, bob, carol, person)


async def test_a_whole_content_keeps_what_came_after_its_version(base: Path) -> None:
    async with disputed(base) as q:
        info = await q.begin(2)
        mine = (info.current or "").replace("line 2 alice", "line 2 both")
        await q.moves_on("line 30\n", "line 30 carol\n")
        assert await q.refused("content", content=mine) == "conflict_moved"
        assert await q.refused("content", content=mine, on="@99999") == "invalid_parameter"
        for choice, more in (("content", {"content": mine}), ("proposed", {})):
            with pytest.raises(RemoteError, match="@99999") as unknown:
                await q.resolve(choice, on="@99999", **more)
            assert f"conflicts show {q.conflict}`" in unknown.value.hint
            assert "--on @N" in unknown.value.hint, "not the conflict's own number"
        assert await q.refused("content", content=mine, on=q.conflict) == "invalid_parameter"
        done = await q.resolve("content", content=mine, on=info.current_version)
        assert done.status == "applied"
        assert q.text == lines(line_2="both", line_30="carol")
        assert (await q.person.list_conflicts()).conflicts == ()


async def test_a_whole_content_that_meets_a_newer_change_overwrites_nothing(base: Path) -> None:
    async with disputed(base) as q:
        info = await q.begin(2)
        mine = (info.current or "").replace("line 2 alice", "line 2 both")
        await q.moves_on("line 2 alice\n", "line 2 carol\n")
        held = q.text
        done = await q.resolve("content", content=mine, on=info.current_version)
        assert done.status == "conflict"
        assert q.text == held == lines(line_2="carol")
        waiting = {item.conflict: item.proposed for item in (await q.person.list_conflicts()).conflicts}
        assert waiting.keys() == {q.conflict, done.conflict}
        assert "line 2 both" in (waiting[done.conflict or ""] or "")


async def test_numbers_of_regions_are_those_that_were_shown(base: Path) -> None:
    """One region goes and another comes: there are two again."""
    async with disputed(base) as q:
        info = await q.begin(2, 20)
        sides: tuple[Side, Side] = ("current", "proposed")
        assert len(info.regions) == 2
        assert await q.refused("regions", regions=sides) == "conflict_moved"
        assert await q.refused("regions", regions=sides, on="@1") == "invalid_parameter"
        await q.moves_on("line 2 alice\n", "line 2\n")
        await q.moves_on("line 20 alice\n", "line 20 carol\n")
        assert await q.refused("regions", regions=sides, on=info.current_version) == "conflict_moved"
        info = await one(q.person)
        assert len(info.regions) == 1
        assert (await q.resolve("regions", regions=("current",), on=info.current_version)).status == "applied"
        assert q.text == lines(line_2="bob", line_20="carol")


async def test_regions_with_equal_lines_are_not_taken_for_each_other(base: Path) -> None:
    """Lines 2, 12 and 22 hold the same, so that one clash looks like another."""
    text = "".join("same\n" if number % 10 == 2 else f"line {number}\n" for number in range(1, 31))
    between = text.split("same\n")
    async with disputed(base) as q:
        await q.alice.write_file("a.txt", text, mode="create")
        version = (await q.bob.read_file("a.txt")).version_id
        alices = "alice\n".join(between[:3]) + "same\n" + between[3]
        assert (await q.alice.write_file("a.txt", alices, mode="truncate")).status == "applied"
        late = await q.bob.write_file("a.txt", "bob\n".join(between), mode="truncate", base=version)
        assert late.status == "conflict"
        q.conflict = late.conflict or ""
        info = await one(q.person)
        assert len(info.regions) == 2
        await q.carol.read_file("a.txt")
        newer = between[0] + "same\n" + "alice\n".join(between[1:])
        assert (await q.carol.write_file("a.txt", newer, mode="truncate")).status == "applied"
        await q.followed()
        assert len((await one(q.person)).regions) == 2
        given: tuple[Side, Side] = ("current", "proposed")
        assert await q.refused("regions", regions=given, on=info.current_version) == "conflict_moved"


async def test_regions_that_only_moved_are_resolved_as_they_were_shown(base: Path) -> None:
    async with disputed(base) as q:
        info = await q.begin(2, 20)
        await q.moves_on("line 1\n", "new\nline 1\n")
        done = await q.resolve("regions", regions=("current", "proposed"), on=info.current_version)
        assert done.status == "applied"
        assert q.text == b"new\n" + lines(line_2="alice", line_20="bob")


async def test_proposed_takes_nothing_away_that_was_not_shown(base: Path) -> None:
    async with disputed(base) as q:
        info = await q.begin(2)
        await q.moves_on("line 2 alice\n", "line 2 carol\n")
        assert await q.refused("proposed") == "conflict_moved"
        assert await q.refused("proposed", on=info.current_version) == "conflict_moved"
        assert await q.refused("current", on=info.current_version) == "conflict_moved"
        now = (await one(q.person)).current_version
        assert (await q.resolve("proposed", on=now)).status == "applied"
        assert q.text == lines(line_2="bob")


async def test_proposed_needs_no_version_while_the_same_lines_conflict(base: Path) -> None:
    async with disputed(base) as q:
        await q.begin(2)
        await q.moves_on("line 30\n", "line 30 carol\n")
        assert (await q.resolve("proposed")).status == "applied"
        assert q.text == lines(line_2="bob", line_30="carol")


async def test_proposed_does_not_replace_what_became_binary_unseen(base: Path) -> None:
    async with disputed(base) as q:
        info = await q.begin(2)
        (q.daemon.workspace / "a.txt").write_bytes(b"\x00\x01\x02binary")
        await q.followed()
        assert await q.refused("proposed") == "conflict_moved"
        assert await q.refused("proposed", on=info.current_version) == "conflict_moved"
        now = await one(q.person)
        assert now.current is None
        assert (await q.resolve("proposed", on=now.current_version)).status == "applied"
        assert b"line 2 bob" in q.text


async def test_proposed_replaces_what_is_no_text_only_where_it_is_named(base: Path) -> None:
    """It was no text already when the conflict was found."""
    async with disputed(base) as q:
        await q.alice.write_file("a.txt", LINES, mode="create")
        version = (await q.bob.read_file("a.txt")).version_id
        (q.daemon.workspace / "a.txt").write_bytes(b"\x00\x01\x02binary")
        late = await q.bob.write_file("a.txt", "bob\n", mode="truncate", base=version)
        assert late.status == "conflict"
        q.conflict = late.conflict or ""
        assert await q.refused("proposed") == "conflict_moved"
        assert (await q.resolve("proposed", on=(await one(q.person)).current_version)).status == "applied"
        assert q.text == b"bob\n"


async def test_where_nothing_is_the_version_is_zero(base: Path) -> None:
    async with disputed(base) as q:
        await q.begin(2)
        (q.daemon.workspace / "a.txt").unlink()
        await q.followed()
        info = await one(q.person)
        assert info.current_version is None
        with pytest.raises(RemoteError) as error:
            await q.resolve("content", content="new\n")
        assert error.value.code == "conflict_moved"
        assert (await q.resolve("content", content="new\n", on="@0")).status == "applied"
        assert q.text == b"new\n"


# --- on the command line ----------------------------------------------------------------------


async def test_a_file_given_on_the_command_line_keeps_what_came_since(base: Path) -> None:
    async with disputed(base) as q:
        info = await q.begin(2)
        mine = base / "mine"
        mine.write_text((info.current or "").replace("line 2 alice", "line 2 both"))
        version = await anyio.to_thread.run_sync(shown, q.daemon, q.conflict)
        assert version == info.current_version
        await q.moves_on("line 30\n", "line 30 carol\n")
        ended, said = run(q.daemon, "resolve", q.conflict, "--file", str(mine), code=q.code)
        assert ended == 1
        assert f"`orchestrator conflicts show {q.conflict}`" in said
        assert "--on @N" in said
        ended, said = run(q.daemon, "resolve", q.conflict, "--file", str(mine), "--on", version, code=q.code)
        assert ended == 0, said
        assert q.text == lines(line_2="both", line_30="carol")


async def test_an_acceptance_names_the_review_that_was_shown(base: Path) -> None:
    """The answer that a person saw came to nothing, and another came in its place."""
    other = {**BOTH, "lines": {"1": ["two, carol and bob"]}}
    with reviewed(base, route("quick", accept="person"), {"quick": [BOTH, other]}) as daemon:
        code = await daemon.make_approver()
        async with (
            daemon.client("alice") as alice,
            daemon.client("bob") as bob,
            daemon.client("carol") as carol,
            daemon.client() as person,
        ):
            number = await conflict(alice, bob)
            await follow(person, "review_answered")
            looked_at = await answered(person)
            ended, said = run(daemon, "show", number)
            assert f"--accept {looked_at}" in said
            await carol.read_file("a.txt")
            await carol.edit_file("a.txt", [Replacement(search="two, alice", replace="two, carol")])
            await follow(person, "review_answered", 2)
            held = (daemon.workspace / "a.txt").read_text()
            with pytest.raises(RemoteError) as error:
                await person.resolve_conflict(number, "review", approver=code)
            assert error.value.code == "invalid_parameter"
            with pytest.raises(RemoteError) as error:
                await person.resolve_conflict(number, "review", review=number, approver=code)
            assert error.value.code == "version_unknown"
            ended, said = run(daemon, "resolve", number, "--accept", looked_at, code=code)
            assert ended == 1
            assert (daemon.workspace / "a.txt").read_text() == held
            now = await answered(person)
            assert now != looked_at
            assert f"{now} has come after review {looked_at}" in said
            ended, said = run(daemon, "resolve", number, "--accept", now, code=code)
            assert ended == 0, said
            assert "two, carol and bob" in (daemon.workspace / "a.txt").read_text()


# --- who may settle ---------------------------------------------------------------------------

RULE = """\
[[rule]]
name = "limit"
agents = ["class:review"]
actions = ["{action}"]
paths = ["a.txt"]
verdict = "{verdict}"
"""


@pytest.mark.parametrize("choice", ["current", "proposed"])
@pytest.mark.parametrize(
    ("action", "verdict", "code"),
    [
        pytest.param("review", "deny", "denied", id="may not review"),
        pytest.param("read", "deny", "denied", id="may not read"),
        pytest.param("read", "ask", "denied", id="may not read without asking"),
        pytest.param("review", "ask", "not_permitted", id="asks"),
    ],
)
async def test_an_agent_resolves_where_it_may_review_and_read(
    base: Path, action: str, verdict: str, code: str, choice: Side
) -> None:
    policy = RULE.format(action=action, verdict=verdict)
    with reviewed(base, policy, {}) as daemon:
        approver = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            held = (daemon.workspace / "a.txt").read_text()
            token = (await person.agent_add("rev", agent_class="review", approver=approver)).token
            async with daemon.client("rev", token=token) as rev:
                if verdict == "ask" and action == "review" and choice == "proposed":
                    waits = await rev.resolve_conflict(number, choice)
                    assert waits.status == "waiting"
                    assert (daemon.workspace / "a.txt").read_text() == held
                    assert (
                        await person.approve(waits.approval or "", approver=approver, unseen=True)
                    ).status == "applied"
                    assert "two, bob" in (daemon.workspace / "a.txt").read_text()
                    assert (await person.list_conflicts()).conflicts == ()
                    return
                with pytest.raises(RemoteError) as error:
                    await rev.resolve_conflict(number, choice)
                assert error.value.code == code
            assert (daemon.workspace / "a.txt").read_text() == held
            assert (await one(person)).conflict == number


async def test_a_resolution_that_waited_is_held_to_the_policy_of_the_day(base: Path) -> None:
    with reviewed(base, RULE.format(action="review", verdict="ask"), {}) as daemon:
        approver = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            held = (daemon.workspace / "a.txt").read_text()
            token = (await person.agent_add("rev", agent_class="review", approver=approver)).token
            async with daemon.client("rev", token=token) as rev:
                waits = await rev.resolve_conflict(number, "proposed")
            daemon.write(RULE.format(action="review", verdict="deny"), {})
            await person.policy_reload(approver=approver)
            assert (await person.approve(waits.approval or "", approver=approver, unseen=True)).status == "dropped"
            assert (daemon.workspace / "a.txt").read_text() == held
            assert (await one(person)).conflict == number


async def test_an_agent_withdraws_its_own_change_and_never_accepts_it(base: Path) -> None:
    with reviewed(base, "", {}) as daemon:
        approver = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client() as person:
            token = (await person.agent_add("rev", agent_class="review", approver=approver)).token
            async with daemon.client("rev", token=token) as rev:
                number = await conflict(alice, rev)
                held = (daemon.workspace / "a.txt").read_text()
                on = (await one(person)).current_version
                ways: tuple[tuple[Any, dict[str, Any]], ...] = (
                    ("proposed", {}),
                    ("content", {"content": held.replace("alice", "bob"), "on": on}),
                    ("regions", {"regions": ["proposed"], "on": on}),
                    ("review", {"review": "@1"}),
                )
                for choice, more in ways:
                    with pytest.raises(RemoteError) as error:
                        await rev.resolve_conflict(number, choice, **more)
                    assert error.value.code == "not_permitted", choice
                assert (await rev.resolve_conflict(number, "current")).status == "dropped"
            assert (daemon.workspace / "a.txt").read_text() == held
