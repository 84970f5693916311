"""What the crash tests share: the operations that are cut off, and the questions asked after the restart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from orchestrator.api.journal_operations import JournalEntry
from orchestrator.api.results import ChangeAnswer
from orchestrator.clients.python import FileAccess, Replacement
from orchestrator.core.errors import DaemonRestarted, DaemonUnreachable, OrchestratorError
from tests.daemon.daemon_process import RunningDaemon

CRASHING = ("-m", "tests.crash.crashing")
AGENT = "alice"
REQUEST = "the-call-that-is-cut-off"
OLD = "".join(f"line {n}\n" for n in range(1, 21))
NEW = OLD.replace("line 7\n", "line seven\nand a half\n")

POLICY = """
name = "all"
default = "deny"

[[rule]]
name = "all"
agents = ["*"]
actions = ["list", "read", "search", "create", "write", "delete", "move", "revert"]
paths = ["**"]
verdict = "allow"
"""


class Operation(msgspec.Struct, frozen=True):
    """One kind of change. `before` and `after` are the contents of every file it touches; None: no file."""

    name: str
    before: dict[str, str | None]
    after: dict[str, str | None]
    call: Callable[[FileAccess, str], Awaitable[ChangeAnswer]]
    main: str  # the path whose content the disk step is about
    prepare: Callable[[FileAccess], Awaitable[object]] | None = None
    on_disk: dict[str, str] = {}  # before the daemon starts, where `prepare` makes `before` of it
    writes_temp: bool = True
    earlier: int = 0  # changes that `prepare` makes: how often each step is reached before the call
    earlier_temps: int | None = None  # of them, those that write a temporary file; None: all
    emptied: str = ""  # a folder that goes too: all is unlinked, and it is removed, before the outcome is noted


async def _create(files: FileAccess, request_id: str) -> ChangeAnswer:
    return await files.write_file("new.txt", NEW, mode="create", request_id=request_id)


async def _create_below(files: FileAccess, request_id: str) -> ChangeAnswer:
    return await files.write_file("a/b/new.txt", NEW, mode="create", request_id=request_id)


async def _edit(files: FileAccess, request_id: str) -> ChangeAnswer:
    change = Replacement(search="line 7\n", replace="line seven\nand a half\n")
    return await files.edit_file("notes.txt", [change], request_id=request_id)


async def _delete(files: FileAccess, request_id: str) -> ChangeAnswer:
    return await files.delete_file("notes.txt", request_id=request_id)


async def _move(files: FileAccess, request_id: str) -> ChangeAnswer:
    return await files.move_file("notes.txt", "moved.txt", request_id=request_id)


async def _edit_first(files: FileAccess) -> ChangeAnswer:
    return await _edit(files, "the-call-before")


async def _revert(files: FileAccess, request_id: str) -> ChangeAnswer:
    made = await _edit_first(files)  # the same request again: its answer names the change
    return await files.revert(made.change or "", request_id=request_id)


SEVERAL_PATCH = """--- a/notes.txt
+++ b/notes.txt
@@ -6,3 +6,4 @@
 line 6
-line 7
+line seven
+and a half
 line 8
diff --git a/third.txt b/below/moved.txt
rename from third.txt
rename to below/moved.txt
--- a/third.txt
+++ b/below/moved.txt
@@ -6,3 +6,4 @@
 line 6
-line 7
+line seven
+and a half
 line 8
--- /dev/null
+++ b/below/new.txt
@@ -0,0 +1 @@
+made
--- a/short.txt
+++ /dev/null
@@ -1 +0,0 @@
-short
"""


async def _several(files: FileAccess, request_id: str) -> ChangeAnswer:
    return await files.apply_patch(SEVERAL_PATCH, base="@3", request_id=request_id)


async def _move_tree(files: FileAccess, request_id: str) -> ChangeAnswer:
    return await files.move_file("tree", "other/tree", request_id=request_id)


async def _delete_tree(files: FileAccess, request_id: str) -> ChangeAnswer:
    return await files.delete_file("tree", request_id=request_id)


async def _work(files: FileAccess) -> None:
    await _edit_first(files)
    await files.write_file("more.txt", "more\n", mode="create", request_id="another-before")
    await files.move_file("third.txt", "below/moved.txt", request_id="the-third-before")


async def _rollback(files: FileAccess, request_id: str) -> ChangeAnswer:
    return await files.rollback(agent=AGENT, request_id=request_id)


CREATE = Operation("create", {"new.txt": None}, {"new.txt": NEW}, _create, "new.txt")
CREATE_BELOW = Operation("create_below", {"a/b/new.txt": None}, {"a/b/new.txt": NEW}, _create_below, "a/b/new.txt")
EDIT = Operation("edit", {"notes.txt": OLD}, {"notes.txt": NEW}, _edit, "notes.txt", on_disk={"notes.txt": OLD})
DELETE = Operation(
    "delete",
    {"notes.txt": OLD},
    {"notes.txt": None},
    _delete,
    "notes.txt",
    on_disk={"notes.txt": OLD},
    writes_temp=False,
)
MOVE = Operation(
    "move",
    {"notes.txt": OLD, "moved.txt": None},
    {"notes.txt": None, "moved.txt": OLD},
    _move,
    "moved.txt",
    on_disk={"notes.txt": OLD},
    writes_temp=False,
)
REVERT = Operation(
    "revert",
    {"notes.txt": NEW},
    {"notes.txt": OLD},
    _revert,
    "notes.txt",
    prepare=_edit_first,
    on_disk={"notes.txt": OLD},
    earlier=1,
)
SEVERAL = Operation(
    "several",
    {"notes.txt": OLD, "third.txt": OLD, "below/moved.txt": None, "below/new.txt": None, "short.txt": "short\n"},
    {"notes.txt": NEW, "third.txt": None, "below/moved.txt": NEW, "below/new.txt": "made\n", "short.txt": None},
    _several,
    "notes.txt",
    on_disk={"notes.txt": OLD, "third.txt": OLD, "short.txt": "short\n"},
)
MOVE_TREE = Operation(
    "move_tree",
    {"tree/a.txt": OLD, "tree/b/c.txt": NEW, "other/tree/a.txt": None, "other/tree/b/c.txt": None},
    {"tree/a.txt": None, "tree/b/c.txt": None, "other/tree/a.txt": OLD, "other/tree/b/c.txt": NEW},
    _move_tree,
    "other/tree/a.txt",
    on_disk={"tree/a.txt": OLD, "tree/b/c.txt": NEW},
    writes_temp=False,
    emptied="tree",
)
DELETE_TREE = Operation(
    "delete_tree",
    {"tree/a.txt": OLD, "tree/b/c.txt": NEW},
    {"tree/a.txt": None, "tree/b/c.txt": None},
    _delete_tree,
    "tree/a.txt",
    on_disk={"tree/a.txt": OLD, "tree/b/c.txt": NEW},
    writes_temp=False,
    emptied="tree",
)
ROLLBACK = Operation(
    "rollback",
    {"notes.txt": NEW, "more.txt": "more\n", "third.txt": None, "below/moved.txt": OLD},
    {"notes.txt": OLD, "more.txt": None, "third.txt": OLD, "below/moved.txt": None},
    _rollback,
    "notes.txt",
    prepare=_work,
    on_disk={"notes.txt": OLD, "third.txt": OLD},
    earlier=3,
    earlier_temps=2,
    emptied="below",
)
OPERATIONS = (CREATE, CREATE_BELOW, EDIT, DELETE, MOVE, REVERT, SEVERAL, MOVE_TREE, DELETE_TREE, ROLLBACK)
FIRST = (CREATE_BELOW, EDIT, SEVERAL)
"""Between them they take every step of a change; the others repeat those on more files."""


def marks_of(operation: Operation) -> list[pytest.MarkDecorator]:
    """The long series run all operations, the others the first ones."""
    return [] if operation in FIRST else [pytest.mark.soak]


def nth(step: str, operation: Operation, *, half: int = 1) -> str:
    """A step of the operation's own call, past those of the changes before it."""
    temps = operation.earlier if operation.earlier_temps is None else operation.earlier_temps
    if step == "temp_half_written":
        return f"{step}:{2 * temps + half}"
    if step.startswith("temp_"):
        return f"{step}:{temps + 1}"
    return f"{step}:{operation.earlier + 1}"


class Ground(RunningDaemon):
    """A workspace that outlives its daemons."""

    def prepare(self, operation: Operation) -> None:
        (self.state_dir / "policy.toml").write_text(POLICY)
        for path, content in operation.on_disk.items():
            (self.workspace / path).parent.mkdir(parents=True, exist_ok=True)
            (self.workspace / path).write_text(content)

    async def crash(self, operation: Operation, *, at: str, **more: str) -> ChangeAnswer | OrchestratorError:
        """Run the call on a daemon that dies at a step; its answer, if one came out before the end."""
        self._module = CRASHING
        options = [part for name, value in more.items() for part in (f"--{name}", value)]
        self.start("--at", at, *options)
        reported: ChangeAnswer | OrchestratorError
        try:
            async with self.client(AGENT) as files:
                if operation.prepare is not None:
                    await operation.prepare(files)
                reported = await operation.call(files, REQUEST)
        except (DaemonRestarted, DaemonUnreachable) as error:
            reported = error
        assert self.wait() == -9, self.log[-2000:]
        return reported

    @contextmanager
    def serving(self) -> Iterator[None]:
        """A daemon as shipped, that ends cleanly."""
        self._module = ("-m", "orchestrator", "daemon")
        said = self.start()
        assert said.get("ok") is True, said
        try:
            yield
        finally:
            assert self.stop() == 0, self.log[-4000:]
        assert "Traceback" not in self.log, self.log[-4000:]
        assert self.temps() == []  # some are unlinked after the answer, all of them before the end

    def contents(self, operation: Operation) -> dict[str, str | None]:
        """What stands at every path that the operation touches."""
        return {path: content(self.workspace / path) for path in operation.before}

    def temps(self) -> list[str]:
        return [str(path) for path in self.workspace.rglob(".orchestrator-*")]

    async def events(self) -> list[JournalEntry]:
        """All of the journal, oldest first."""
        async with self.client() as person:
            entries: list[JournalEntry] = []
            page = await person.journal_query(limit=200)
            entries += page.entries
            while page.cursor is not None:
                page = await person.journal_query(limit=200, cursor=page.cursor)
                entries += page.entries
        return entries[::-1]

    async def agrees(self) -> None:
        """Disk, journal and projections say the same."""
        async with self.client() as person:
            report = await person.workspace_check()
            assert report.ok, report.differences
            verified = await person.journal_verify()
            assert verified.ok, verified.problems
            rebuilt = await person.journal_rebuild()
            assert rebuilt.ok, rebuilt.first_difference


def content(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


ABOUT_FILES = (
    "change_intended",
    "change_applied",
    "change_aborted",
    "change_diverged",
    "external_file_changed",
    "external_file_created",
    "external_file_removed",
    "files_found",
    "orphan_content_kept",
)


def about_files(events: list[JournalEntry]) -> list[JournalEntry]:
    return [entry for entry in events if entry.kind in ABOUT_FILES]


def outcomes(events: list[JournalEntry]) -> list[dict[str, Any]]:
    """The events that close the last change of the call that was cut off, with their kind."""
    intents = [entry for entry in events if entry.kind == "change_intended"]
    if not intents:
        return []
    number = int(intents[-1].seq.removeprefix("@"))
    return [
        {"kind": entry.kind, **entry.event}
        for entry in events
        if entry.kind in ("change_applied", "change_aborted", "change_diverged") and entry.event["change"] == number
    ]
