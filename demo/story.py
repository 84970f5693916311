"""What happens: six scenes, each of which says what must come of it."""

from __future__ import annotations

import os
import signal

from demo.play import Play, became, holds, marked, served
from demo.stage import DemoFailed

PROTECTED = "Makefile"
PROTECTED_LINES = "\n# a target that an agent would like to have\nhello:\n\t@echo hello\n"
BIG_LINES = 120_000
ATTEMPTS = 6


def same_time(play: Play) -> tuple[str, ...]:
    """Both read the file, then both change it, each without waiting for the other. Returns what was read of it."""
    teller, path, places = play.teller, play.shared.path, play.shared.places
    teller.chapter(f"Both agents read {path} and change it at the same time")
    seen: list[str] = []
    for agent in (play.alice, play.bob):
        agent.ask("read_file", path=path)
    for agent in (play.alice, play.bob):
        head = served(agent.answer()).split("\n", 1)[0]
        teller.line(f"       {agent.name} read {head}")
        seen.append(head.removeprefix(path).split(",")[0].strip())
    for agent, place in ((play.alice, places[1]), (play.bob, places[3])):
        agent.ask("edit_file", path=path, changes=[marked(place, agent.name)], reason="a note of my own")
    for agent in (play.alice, play.bob):
        teller.change(agent.name, "edit_file", became("applied", agent.answer()))
    holds(play, f"{places[1]} (alice)", f"{places[3]} (bob)")
    return tuple(seen)


def stale(play: Play, seen: str) -> str:
    """Alice's new lines move all that is below; bob's patch against the old text is shifted. Returns her change."""
    teller, path, places = play.teller, play.shared.path, play.shared.places
    teller.chapter("Alice adds lines above; bob's patch is against the text of before, and is rebased")
    added = f"{places[0]}\nalice was here, line one\nalice was here, line two"
    first = became(
        "applied",
        play.alice.call("edit_file", path=path, changes=[{"search": places[0], "replace": added}], reason="an aside"),
    )
    teller.change("alice", "edit_file", first)
    second = became("applied", play.bob.call("edit_file", path=path, changes=[marked(places[4], "bob")], base=seen))
    teller.change("bob", "edit_file", second)
    if second["rung"] != "shifted":
        raise DemoFailed(f"bob's stale patch was fitted by {second['rung']}, not shifted")
    holds(play, "alice was here, line two", f"{places[4]} (bob)")
    return str(first["change"])


def overlap(play: Play, seen: str) -> None:
    """Both want the same line; nobody's text is lost, and a person settles it."""
    teller, path, place = play.teller, play.shared.path, play.shared.places[2]
    teller.chapter("Both change the same line: a conflict, which a person settles")
    hers, his = f"{place} (as alice has it)", f"{place} (as bob has it)"
    changes = [{"search": place, "replace": hers}]
    teller.change("alice", "edit_file", became("applied", play.alice.call("edit_file", path=path, changes=changes)))
    answer = play.bob.call("edit_file", path=path, changes=[{"search": place, "replace": his}], base=seen)
    conflict = became("conflict", answer)
    teller.change("bob", "edit_file", conflict)
    if hers not in answer.texts[1]:
        raise DemoFailed("the conflict does not show bob the current lines")
    teller.line("       bob is shown the current lines; the file holds alice's")
    name = str(conflict["conflict"])
    shown = play.stage.person("conflicts", "show", name).answer
    both = str(shown["current"]).replace(hers, f"{hers}\n{his}")
    seen = str(shown["current_version"])
    arguments = ("conflicts", "resolve", name, "--file", "-", "--on", seen, "--reason", "keep both")
    settled = play.stage.person(*arguments, stdin=both).answer
    teller.change("a person", f"orchestrator conflicts resolve {name}", settled)
    known = play.bob.call("await_change", id=name).json
    teller.line(f"       bob's await_change({name}) says: {known['status']}, {known['message']}")
    holds(play, f"{hers}\n{his}")


def protected(play: Play) -> None:
    """A file that makes tools run code waits for a person; the daemon applies it on their yes."""
    teller = play.teller
    teller.chapter(f"Bob wants to change {PROTECTED}, which makes tools run code: a person decides")
    mode = "append" if (play.stage.workspace / PROTECTED).exists() else "create"
    before = (play.stage.workspace / PROTECTED).read_bytes() if mode == "append" else b""
    answer = play.bob.call("write_file", path=PROTECTED, content=PROTECTED_LINES, mode=mode, reason="for a demo")
    waiting = became("waiting", answer)
    teller.change("bob", f"write_file {PROTECTED}", waiting)
    name = str(waiting["approval"])
    play.bob.ask("await_change", id=name)
    listed = play.stage.person("approvals", "list").answer["approvals"]
    if [item["approval"] for item in listed] != [name]:
        raise DemoFailed(f"what waits is {listed}, not {name}")
    if before and (play.stage.workspace / PROTECTED).read_bytes() != before:
        raise DemoFailed(f"{PROTECTED} changed before anyone agreed")
    play.stage.person("approvals", "show", name)
    granted = play.stage.person("approvals", "approve", name).answer
    teller.change("a person", f"orchestrator approvals approve {name}", granted)
    known = became("applied", play.bob.answer())
    teller.line(f"       bob, who waited, hears: {known['status']} as {known['change']}")
    if not play.stage.read(PROTECTED).endswith(PROTECTED_LINES):
        raise DemoFailed(f"{PROTECTED} does not hold what was approved")


def undo(play: Play, change: str) -> None:
    """A change from the middle of the history goes; what came later stays."""
    teller, places = play.teller, play.shared.places
    teller.chapter(f"Alice takes back {change}, from the middle of the history; later work stays")
    teller.change("alice", f"revert {change}", became("applied", play.alice.call("revert", change=change)))
    holds(play, f"{places[1]} (alice)", f"{places[4]} (bob)", f"{places[2]} (as alice has it)")
    if "alice was here" in play.stage.read(play.shared.path):
        raise DemoFailed("what was reverted is still there")


def crash(play: Play) -> None:
    """The daemon dies while it writes; the transport starts it again and sends the call again, which applies once."""
    teller = play.teller
    teller.chapter("The daemon is killed in the middle of bob's write, and started again")
    pid = int(play.stage.person("status").answer["pid"])
    path, content, mid = _killed_while_writing(play, pid)
    left = [name for name in os.listdir(play.stage.workspace) if name.startswith(".orchestrator-")]
    teller.line(f"       SIGKILL to {pid} {'while it wrote' if mid else 'with the call open'}; left behind: {left}")
    applied = became("applied", play.bob.answer())
    teller.change("bob", f"write_file {path}, sent again by the transport", applied)
    arguments = {"path": path, "content": content, "mode": "create", "request_id": path}
    once_more = became("applied", play.bob.call("write_file", **arguments))
    if once_more["change"] != applied["change"]:
        raise DemoFailed(f"the same request was applied twice: {applied['change']} and {once_more['change']}")
    teller.line(f"       bob sends it once more: the same answer, {once_more['change']}; it was applied once")
    if play.stage.read(path) != content:
        raise DemoFailed(f"{path} does not hold what bob wrote")
    facts = play.stage.up()
    if facts["pid"] == pid or facts["started"]:
        raise DemoFailed("the transport did not start the daemon again")
    recovered = play.stage.person("status").answer["health"].get("recovered", 0)
    teller.line(f"       `orchestrator up` finds it running, process {facts['pid']}; changes it recovered: {recovered}")
    if any(name.startswith(".orchestrator-") for name in os.listdir(play.stage.workspace)):
        raise DemoFailed("a temporary file was left behind")
    again = served(play.alice.call("read_file", path=path, end=1)).split("\n", 1)[0]
    teller.line(f"       alice's session goes on: {again}")


def _killed_while_writing(play: Play, pid: int) -> tuple[str, str, bool]:
    """Kill the daemon while its temporary file is there; after a few misses, while the call is open."""
    for attempt in range(ATTEMPTS):
        path, mid = f"orchestrator-demo-{attempt}.txt", attempt < ATTEMPTS - 1
        content = "".join(f"{attempt} {number}\n" for number in range(BIG_LINES))
        if not mid:
            os.kill(pid, signal.SIGSTOP)
        play.bob.ask("write_file", path=path, content=content, mode="create", request_id=path)
        if not mid or _caught(play, pid, path):
            os.kill(pid, signal.SIGKILL)
            return path, content, mid
        became("applied", play.bob.answer())
    raise AssertionError("the last attempt always kills")


def _caught(play: Play, pid: int, path: str) -> bool:
    """Stop the daemon as soon as its temporary file is there; whether it was still there then."""
    while True:
        names = os.listdir(play.stage.workspace)
        if any(name.startswith(".orchestrator-") for name in names):
            os.kill(pid, signal.SIGSTOP)
            if any(name.startswith(".orchestrator-") for name in os.listdir(play.stage.workspace)):
                return True
            os.kill(pid, signal.SIGCONT)
        if path in names:
            return False
