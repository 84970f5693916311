"""The blocking connection and the Python client, against a daemon in a thread."""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from orchestrator.api import locations, sockets
from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.administration import STOP
from orchestrator.api.framing import Preamble, Refusal, refusal, rejection
from orchestrator.api.operation import AnyOperation
from orchestrator.api.operations import DELETE_FILE, EDIT_FILE, OPERATIONS, READ_FILE, REVERT
from orchestrator.api.sockets import PROTOCOL
from orchestrator.clients import running_daemon
from orchestrator.clients.connection import Caller, Connection, asked
from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from orchestrator.core.errors import DaemonRestarted, DaemonStopped, DaemonUnreachable, WorkspaceNested
from tests.clients.fakes import PATIENCE_S, FakeDaemon, RpcDaemon
from tests.docs.client_stub import STUB, stub

TEXT = r.FileText(
    path="a.py",
    version_id="@3",
    start=1,
    end=1,
    total_lines=1,
    text="x\n",
    encoding="utf-8",
    eol="lf",
    content_hash="sha256:" + "0" * 64,
    truncated=False,
)
APPLIED = r.ChangeAnswer(status="applied", success=True, message="applied", version_id="@5")
DENIED = Refusal(code="denied", message="a rule says no", hint="Do not.", details={"rule": "r"}, shown="1  x")


def answers(operation: str, params: dict[str, Any]) -> r.Result | Refusal | None:
    match operation:
        case "read_file":
            return TEXT
        case "edit_file":
            return APPLIED
        case "delete_file":
            return DENIED
        case _:
            return None


@pytest.fixture
def rpc(workspace: Path) -> Iterator[RpcDaemon]:
    daemon = RpcDaemon(workspace, answers)
    yield daemon
    daemon.close()


def test_a_typed_call(rpc: RpcDaemon) -> None:
    with Connection(rpc.path, Caller(client="t")) as connection:
        assert connection.welcome.session == "s-1"
        assert connection.call(READ_FILE, p.ReadFile(path="a.py")) == TEXT
        assert connection.call(EDIT_FILE, p.EditFile("a", ())) == APPLIED
    read, edit = rpc.calls
    assert read == ("read_file", {"path": "a.py"}), "defaults are left out"
    assert len(edit[1]["request_id"]) == 32
    preamble = msgspec.convert(rpc.preambles[0], Preamble)
    assert (preamble.orchestrator, preamble.person, preamble.client) == (PROTOCOL, True, "t")


@pytest.mark.parametrize("caller", [Caller(agent="a"), Caller(token="t")])
def test_an_agent_is_no_person(rpc: RpcDaemon, caller: Caller) -> None:
    Connection(rpc.path, caller).close()
    assert "person" not in rpc.preambles[0]


def test_a_refusal_is_raised_whole(rpc: RpcDaemon) -> None:
    with Connection(rpc.path, Caller()) as connection:
        with pytest.raises(RemoteError, match="a rule says no") as caught:
            connection.call(DELETE_FILE, p.DeleteFile(path="a"))
        assert refusal(caught.value) == DENIED
        assert (caught.value.code, caught.value.hint, caught.value.shown) == ("denied", "Do not.", "1  x")
        assert connection.call(READ_FILE, p.ReadFile(path="a.py")) == TEXT


def test_the_end_of_the_daemon_names_the_request(rpc: RpcDaemon) -> None:
    with Connection(rpc.path, Caller()) as connection, pytest.raises(DaemonRestarted) as caught:
        connection.call(REVERT, p.Revert(change="@3", request_id="mine"))
    assert caught.value.details == {"request_id": "mine"}


def connect(session: str | None = None, *, start: bool = False) -> None:
    async def main() -> None:
        async with FileAccess.connect(session=session, start=start):
            raise AssertionError("nobody answers")

    anyio.run(main)


@pytest.mark.usefixtures("workspace")
def test_no_daemon() -> None:
    with pytest.raises(DaemonUnreachable, match="no daemon runs"):
        connect()


def test_the_refusal_of_a_daemon_that_is_started(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As from the command line: with the daemon's own code and hint."""
    refused = rejection(WorkspaceNested(f"{workspace} is in another", hint="Use that."))
    code = f"import os, sys; os.write(int(sys.argv[-2]), {msgspec.json.encode(refused)!r} + b'\\n')"
    monkeypatch.setattr(running_daemon, "command", lambda *given: [sys.executable, "-c", code])
    with pytest.raises(RemoteError, match="is in another") as caught:
        connect(start=True)
    assert (caught.value.code, caught.value.hint) == ("workspace_nested", "Use that.")


def test_a_session_is_not_resumed_where_a_person_stopped_the_daemon(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_daemon, "command", lambda *given: ["/must/not/be/started"])
    path = sockets.socket_path(locations.workspace_id(str(workspace)))
    locations.write_location(locations.Location(str(workspace), f"{workspace}-state", path, os.getpid(), "stopped"))
    with pytest.raises(DaemonStopped, match="a person stopped"):
        connect("s-1", start=True)


def test_nothing_answers(daemon: FakeDaemon) -> None:
    daemon.deafen()
    with pytest.raises(DaemonUnreachable, match="no daemon runs"):
        connect()
    with pytest.raises(DaemonUnreachable, match="nothing answers"):
        Connection(daemon.path, Caller())


def test_a_request_id_only_where_there_is_a_place_for_it() -> None:
    assert asked(1, STOP, p.Params()).request_id is None
    assert asked(1, READ_FILE, p.ReadFile(path="a")).request_id is None
    assert asked(1, REVERT, p.Revert(change="@1")).request_id is not None


# --- the Python client --------------------------------------------------------------------


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda op: op.name)
def test_each_operation_is_a_method(operation: AnyOperation) -> None:
    signature = inspect.signature(getattr(FileAccess, operation.name))
    given = {name: parameter.default for name, parameter in signature.parameters.items() if name != "self"}
    fields = msgspec.structs.fields(operation.struct)
    assert given == {
        field.name: inspect.Parameter.empty if field.default is msgspec.NODEFAULT else field.default for field in fields
    }
    assert signature.return_annotation is operation.result


def test_the_stub_for_type_checkers_is_that_of_the_catalogue() -> None:
    assert STUB.read_text(encoding="utf-8") == stub(), "run `make docs`"


def test_wrong_arguments_are_reported_before_anything_is_sent(rpc: RpcDaemon) -> None:
    async def main() -> None:
        async with FileAccess.connect() as files:
            untyped: Any = files
            with pytest.raises(TypeError, match="Missing required argument 'path'"):
                await untyped.read_file()
            with pytest.raises(TypeError, match="Unexpected keyword argument 'line'"):
                await untyped.read_file("a.py", line=3)

    anyio.run(main)
    assert rpc.calls == []


def test_no_method_lacks_its_operation() -> None:
    named = {name for name, member in inspect.getmembers(FileAccess) if inspect.iscoroutinefunction(member)}
    assert {name for name in named if not name.startswith("_")} == {operation.name for operation in OPERATIONS}


def test_the_client_reads_and_changes(rpc: RpcDaemon) -> None:
    async def main() -> None:
        async with FileAccess.connect(agent="reviewer", session="s-8") as files:
            assert (files.session, files.agent, files.workspace) == ("s-8", "a", "/w")
            assert await files.read_file("a.py", start=2) == TEXT
            assert await files.edit_file("a.py", [Replacement(search="x", replace="y")]) == APPLIED
            with pytest.raises(RemoteError, match="a rule says no"):
                await files.delete_file("a.py")

    anyio.run(main)
    assert rpc.calls[0] == ("read_file", {"path": "a.py", "start": 2})
    assert rpc.calls[1][1]["changes"] == [{"search": "x", "replace": "y"}]


def test_answers_out_of_order_find_their_calls(daemon: FakeDaemon) -> None:
    def play() -> None:
        link = daemon.accept()
        link.welcome()
        requests = [link.heard(), link.heard()]
        for request in reversed(requests):
            link.reply(request, {**msgspec.to_builtins(TEXT), "path": request["params"]["path"]})
        assert link.line() == b""

    found: list[str] = []

    async def read(files: FileAccess, path: str) -> None:
        assert (await files.read_file(path)).path == path
        found.append(path)

    async def main() -> None:
        async with FileAccess.connect() as files, anyio.create_task_group() as tasks:
            tasks.start_soon(read, files, "a")
            tasks.start_soon(read, files, "b")

    player = threading.Thread(target=play)
    player.start()
    anyio.run(main)
    player.join(10)
    assert sorted(found) == ["a", "b"]


@pytest.mark.usefixtures("rpc")
def test_the_end_of_the_daemon_ends_the_calls() -> None:
    async def main() -> None:
        async with FileAccess.connect() as files:
            with pytest.raises(DaemonRestarted):
                await files.revert("@3")
            with pytest.raises(DaemonUnreachable):
                await files.read_file("a.py")

    anyio.run(main)


@pytest.mark.usefixtures("rpc")
def test_errors_of_the_body_come_out_as_they_are() -> None:
    async def main() -> None:
        async with FileAccess.connect():
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        anyio.run(main)


def test_a_call_that_waits_for_its_turn_to_be_sent_can_be_abandoned(daemon: FakeDaemon) -> None:
    given_up = threading.Event()

    def play() -> None:
        link = daemon.accept()
        link.welcome()
        given_up.wait(PATIENCE_S)  # meanwhile nothing is read
        link.reply(link.heard(), msgspec.to_builtins(APPLIED))
        assert link.line() == b""  # the abandoned call was never sent

    async def main() -> None:
        async with FileAccess.connect() as files, anyio.create_task_group() as tasks:
            tasks.start_soon(partial(files.write_file, "a", "x" * 8_000_000, "truncate"))
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(PATIENCE_S / 2):
                async with anyio.create_task_group() as abandoned:
                    abandoned.start_soon(files.read_file, "b")
                    await anyio.wait_all_tasks_blocked()
                    abandoned.cancel_scope.cancel()
            given_up.set()

    player = threading.Thread(target=play)
    player.start()
    anyio.run(main)
    player.join(10)
    assert not player.is_alive()


def test_an_abandoned_call_leaves_the_connection_whole(daemon: FakeDaemon) -> None:
    def play() -> None:
        link = daemon.accept()
        link.welcome()
        first, second = link.heard(), link.heard()
        link.reply(first, msgspec.to_builtins(TEXT))
        link.reply(second, msgspec.to_builtins(TEXT))
        link.line()

    async def main() -> None:
        async with FileAccess.connect() as files:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(files.read_file, "a")
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()
            assert await files.read_file("a") == TEXT

    player = threading.Thread(target=play)
    player.start()
    anyio.run(main)
    player.join(10)
