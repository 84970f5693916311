"""An agent that may ask to write a file and not read it: no answer depends on what the file holds.

The same calls are made on files with different contents, and whole answers are compared. Only `@N`, times,
random ids and the folder's number may differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.security.hostile_workspace import HostileWorkspace, Line

GUESS = "KEY=hunter2\n"
SECRETS = {
    "guessed": GUESS.encode(),
    "another": b"KEY=swordfish-battery\n",
    "guessed and more": b"first=1\nKEY=hunter2\nlast=3\n",
    "no final newline": b"KEY=hunter2",
    "carriage returns": b"KEY=hunter2\r\nB=2\r\n",
    "empty": b"",
    "many lines": b"".join(b"K%d=%d\n" % (n, n) for n in range(300)),
    "latin-1": "KEY=\xe9t\xe9 d\xe9j\xe0 vu\n".encode("latin-1"),
    "utf-16": GUESS.encode("utf-16"),
    "binary": b"\x00\x01\x02KEY=hunter2\x00" * 9,
}
_PLACE = re.compile(r"\bworld\d+\b")
_SEQ = re.compile(r"@\d+")
_SESSION = re.compile(r"\bs-[0-9a-f]{8,}\b|\.orchestrator-[0-9a-f]+")
_AGENT = re.compile(r"\bguesser-\d+\b")
_TIMES = frozenset(("at", "since", "lastModified", "took_us", "expires_at"))
_SEQS = frozenset(
    (
        *("change", "approval", "previous", "base", "version", "base_version", "current_version", "conflict"),
        *("reverts", "supersedes", "settles", "renews", "from_version", "to_version", "newest", "ids"),
    )
)


def plain(value: Any, key: str = "") -> Any:
    """An answer without what may differ."""
    if isinstance(value, dict):
        return {name: plain(item, name) for name, item in value.items() if name != "id"}
    if isinstance(value, list):
        return [plain(item, key) for item in value]
    if isinstance(value, str):
        return _AGENT.sub("guesser", _SESSION.sub("s-0", _SEQ.sub("@N", _PLACE.sub("world", value))))
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    return "time" if key in _TIMES else "@N" if key in _SEQS else value


class World:
    """One secret, an agent that may not read it, and what it was answered."""

    def __init__(self, hostile: HostileWorkspace, number: int, content: bytes) -> None:
        self.hostile, self.content = hostile, content
        self.name = f"world{number:02}"
        self.path = f"{self.name}/.env"
        self.file = hostile.work / self.path
        self.file.parent.mkdir()
        (hostile.work / self.name / "plain.txt").write_text("plain\n")
        self.file.write_bytes(content)
        self.agent: Line = hostile.line(agent=f"guesser-{number:02}")
        for path in (self.path, f"{self.name}/plain.txt"):
            self.agent.done("file_info", path=path)
        self.reported: list[tuple[str, Any]] = []

    def ask(self, operation: str, **params: Any) -> dict[str, Any]:
        """Make a call and remember its answer; the result, or the refusal."""
        answer = self.agent.call(operation, **params)
        reported = answer.reply.get("result", answer.reply.get("error"))
        about = json.dumps(plain(params), sort_keys=True)
        self.reported.append((f"{operation} {about}", json.dumps(plain(reported))))
        assert isinstance(reported, dict)
        return reported

    def version(self) -> str:
        return str(self.agent.done("file_info", path=self.path)["version_id"])

    def person(self, operation: str, waiting: dict[str, Any]) -> None:
        self.hostile.person.call("approvals_show", approval=waiting["approval"])
        self.hostile.person.call(operation, approval=waiting["approval"], approver=self.hostile.approver)

    def outside(self, content: bytes) -> None:
        """Somebody else writes the file, and the daemon knows by the time that this returns."""
        before = self.version()
        draft = self.hostile.base / "draft"  # in one step, so that no watcher sees half of it
        draft.write_bytes(content)
        draft.replace(self.file)
        assert self.version() != before


def looked_at(world: World) -> None:
    """Facts, listings, history and searches."""
    world.ask("file_info", path=world.path)
    world.ask("list_files", path=world.name, include_hidden=True)
    world.ask("find_files", path=world.name, glob="*")
    world.ask("file_history", path=world.path)
    world.ask("search_content", path=world.name, pattern="KEY")
    world.ask("get_diff", path=world.path)
    world.ask("session_status")


def previewed(world: World) -> None:
    """Every change in preview, with right and wrong guesses."""
    version = world.version()
    for content in (GUESS, "KEY=\n", "", "\u00e9\n", "\U0001f511\n", "a\nb\nKEY=hunter2\n", "K1=1\nK2=2\n"):
        for mode in ("append", "truncate", "create"):
            base = {"base": version} if mode == "truncate" else {}
            world.ask("write_file", path=world.path, content=content, mode=mode, preview=True, **base)
        world.ask("write_file", path=world.path, content=content, mode="truncate", preview=True)
        world.ask("edit_file", path=world.path, changes=[{"search": content or "x", "replace": "y"}], preview=True)
        world.ask("apply_patch", path=world.path, patch=f"@@ -1 +1 @@\n-{content}+y\n", preview=True)
        world.ask("apply_patch", patch=f"--- a/{world.path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-{content}", preview=True)
        added = f"*** Add File: {world.path}\n+{content}"
        for above in ("", f"*** Delete File: {world.path}\n"):
            patch = f"*** Begin Patch\n{above}{added.rstrip()}\n*** End Patch\n"
            world.ask("apply_patch", patch=patch, preview=True)
            world.ask("apply_patch", patch=patch, base=version)
        made = f"--- /dev/null\n+++ b/{world.path}\n@@ -0,0 +1 @@\n+{content}"
        world.ask("apply_patch", patch=f"--- a/{world.path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-{content}\n{made}\n")
    world.ask("apply_patch", path=world.path, patch=f"```\n{GUESS}```\n", base=version, preview=True)
    world.ask("move_file", source=world.path, destination=f"{world.name}/away.txt", preview=True)
    world.ask("move_file", source=world.path, destination=f"{world.name}/.env.old", preview=True)
    world.ask("move_file", source=world.name, destination=f"{world.name}-away", preview=True)
    world.ask("delete_file", path=world.path, preview=True)
    world.ask("delete_file", path=world.path, base=version, preview=True)
    world.ask("delete_file", path=world.name, preview=True)


def requested(world: World) -> None:
    """Changes that wait for a person, are denied, and are asked about afterwards."""
    for params in (
        {"content": GUESS, "mode": "append"},
        {"content": "\u00e9\U0001f511\n", "mode": "append"},
        {"content": GUESS, "mode": "truncate", "base": world.version()},
        {"content": "\u00e9\U0001f511\n", "mode": "truncate", "base": world.version()},
    ):
        waiting = world.ask("write_file", path=world.path, **params)
        world.ask("await_change", id=waiting["approval"], timeout_s=0)
        world.ask("session_status")
        world.person("deny", waiting)
        world.ask("await_change", id=waiting["approval"], timeout_s=0)
    for operation, more in (("delete_file", {}), ("move_file", {"destination": f"{world.name}/x.txt"})):
        name = "source" if operation == "move_file" else "path"
        waiting = world.ask(operation, **{name: world.path, **more})
        world.person("deny", waiting)
        world.ask("await_change", id=waiting["approval"], timeout_s=0)


def granted(world: World) -> None:
    """Changes that a person lets through, what is told of them, and undoing them."""
    for params in (
        {"content": GUESS, "mode": "append"},
        {"content": GUESS, "mode": "truncate", "base": ""},
    ):
        start = world.version()
        if "base" in params:
            params["base"] = start
        waiting = world.ask("write_file", path=world.path, request_id=f"{world.name}-{params['mode']}", **params)
        world.person("approve", waiting)
        done = world.ask("await_change", id=waiting["approval"], timeout_s=0)
        world.ask("write_file", path=world.path, request_id=f"{world.name}-{params['mode']}", **params)
        looked_at(world)
        world.ask("changes_since", version=start, globs=[f"/{world.path}"])
        world.ask("journal_query", path=world.path, limit=50)
        for operation, selection in (("revert", {"change": done["change"]}), ("rollback", {"since": start})):
            globs = {"globs": [f"/{world.name}/"]} if operation == "rollback" else {}
            world.ask(operation, preview=True, **selection, **globs)
        undoing = world.ask("revert", change=done["change"])
        if undoing.get("approval"):
            world.person("approve", undoing)
            world.ask("await_change", id=undoing["approval"], timeout_s=0)
        world.ask("revert", change=done["change"], preview=True)


def overtaken(world: World) -> None:
    """The file changes while a request waits, and after a change that is to be undone."""
    waiting = world.ask("write_file", path=world.path, content=GUESS, mode="append")
    world.outside(b"new=1\n" + world.content)
    world.person("approve", waiting)
    reported = world.ask("await_change", id=waiting["approval"], timeout_s=0)
    if reported.get("approval"):
        world.person("deny", reported)
    stale = world.version()
    waiting = world.ask("write_file", path=world.path, content=GUESS, mode="truncate", base=stale)
    world.outside(world.content + b"\nand=more\n")
    world.person("approve", waiting)
    world.ask("await_change", id=waiting["approval"], timeout_s=0)
    for content in (GUESS, "x\n"):
        world.ask("write_file", path=world.path, content=content, mode="truncate", base=stale)
        world.ask("write_file", path=world.path, content=content, mode="truncate", base=stale, preview=True)
    world.ask("delete_file", path=world.path, base=stale)
    waiting = world.ask("write_file", path=world.path, content=GUESS, mode="append")
    world.person("approve", waiting)
    done = world.ask("await_change", id=waiting["approval"], timeout_s=0)
    world.outside(b"in front=1\n" + world.file.read_bytes())
    world.ask("revert", change=done["change"], preview=True)
    world.ask("rollback", agent=world.agent.first.reply["agent"], preview=True)
    undone = world.ask("revert", change=done["change"])
    for others in (GUESS.encode(), world.content + b"\nand=more\n"):  # the latter is what the undo proposes
        world.ask("list_conflicts", conflict=undone["conflict"])
        world.ask("await_change", id=undone["conflict"], timeout_s=0)
        world.outside(others)
        world.ask("list_conflicts", conflict=undone["conflict"])
        world.ask("await_change", id=undone["conflict"], timeout_s=0)
    world.ask("journal_query", path=world.path, limit=100)
    looked_at(world)


@pytest.fixture(scope="module")
def worlds(hostile: HostileWorkspace) -> Iterator[dict[str, World]]:
    made = {name: World(hostile, number, content) for number, (name, content) in enumerate(SECRETS.items())}
    yield made
    for world in made.values():
        world.agent.close()


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param(looked_at, id="facts"),
        pytest.param(previewed, id="previews"),
        pytest.param(requested, id="requests that are denied"),
        pytest.param(granted, id="requests that are granted, and their undo"),
        pytest.param(overtaken, id="files that change meanwhile"),
    ],
)
def test_no_answer_reports_secrets_apart(worlds: dict[str, World], calls: Callable[[World], None]) -> None:
    for world in worlds.values():
        world.reported.clear()
        calls(world)
    expected = worlds["guessed"].reported
    for name, world in worlds.items():
        assert [call for call, _ in world.reported] == [call for call, _ in expected], name
        for (call, reported), (_, like) in zip(world.reported, expected, strict=True):
            assert reported == like, (name, call)


def test_a_guess_that_is_kept_elsewhere_does_not_make_a_version_undoable(hostile: HostileWorkspace) -> None:
    """The blob store is shared by all paths: that it holds a content must not show under another name."""
    secret = hostile.work / "kept" / ".env"
    secret.parent.mkdir()
    reported = []
    for number, content in enumerate((GUESS, "KEY=swordfish\n")):
        secret.write_text(content)
        hostile.agent.done("write_file", path=f"kept/guess{number}.txt", content=GUESS, mode="create")
        history = hostile.agent.done("file_history", path="kept/.env")["versions"]
        reported.append((history[0].get("not_kept"), history[0].get("size")))
    assert reported[0] == reported[1]


@pytest.mark.parametrize("operation", ["list_files", "file_info"])
def test_sizes_are_not_reported(hostile: HostileWorkspace, operation: str) -> None:
    folder = hostile.work / f"sized-{operation}"
    folder.mkdir()
    (folder / ".env").write_text(GUESS)
    (folder / "a.txt").write_text("four")
    path = Path(folder.name)
    if operation == "list_files":
        entries = hostile.agent.done(operation, path=str(path), include_hidden=True)["entries"]
        assert {entry["name"]: entry.get("size") for entry in entries} == {".env": None, "a.txt": 4}
    else:
        assert hostile.agent.done(operation, path=str(path / ".env")).get("size") is None
        assert hostile.agent.done(operation, path=str(path / "a.txt"))["size"] == 4
