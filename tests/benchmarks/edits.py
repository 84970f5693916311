"""One exact edit in the middle of a 20,000-line file: ours journalled and synced, the peers' neither."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from orchestrator.clients.python import Replacement
from tests.benchmarks.fixtures import unique_line
from tests.benchmarks.measuring import Row, Samples, Target, Work, in_turns
from tests.benchmarks.peers import Peer, mcp_session
from tests.benchmarks.setting import Rows, Setting

Edit = Callable[[str, str], Awaitable[None]]

SOCKET, DOOR = "one durable edit, 20,000 lines, socket", "one durable edit, 20,000 lines, MCP stdio"


async def rows(setting: Setting) -> Rows:
    """Each contender edits a copy of its own; each edit replaces the line that its last one wrote."""
    async with AsyncExitStack() as stack:
        ours = [await _socket(setting, stack), await _transport(setting, stack)]
        contenders = dict(zip((SOCKET, DOOR), (_turns(setting, edit) for edit in ours), strict=True))
        if setting.largefile.command:
            contenders["largefile"] = _turns(
                setting, await largefile_edit(setting, stack, _copy(setting, setting.largefile))
            )
        if setting.filesystem.command:
            contenders["filesystem"] = _turns(
                setting, await filesystem_edit(setting, stack, _copy(setting, setting.filesystem))
            )
        taken = await in_turns(contenders, setting.times(30))
    peers = (
        ("largefile", "edit_content", setting.largefile, 4.0),
        ("filesystem", "edit_file", setting.filesystem, 1.5),
    )
    return [
        Row(
            work=work,
            ours=taken[work],
            peer=f"{peer.name} {tool}",
            theirs=taken.get(key) or Samples([], peer.trouble),
            target=Target(at_least=times),
        )
        for key, tool, peer, times in peers
        for work in (SOCKET, DOOR)
    ]


def _turns(setting: Setting, edit: Edit) -> Work:
    written = unique_line(setting.text)
    turn = 0

    async def work() -> None:
        nonlocal written, turn
        turn += 1
        old, written = written, f"# edited {turn:04d} here"
        await edit(old, written)

    return work


async def _socket(setting: Setting, stack: AsyncExitStack) -> Edit:
    files = await stack.enter_async_context(setting.daemon.client("editor"))
    (setting.daemon.workspace / "socket.py").write_text(setting.text, encoding="utf-8")

    async def edit(old: str, new: str) -> None:
        answer = await files.edit_file("socket.py", [Replacement(search=old, replace=new)])
        assert answer.status == "applied", answer

    return edit


async def _transport(setting: Setting, stack: AsyncExitStack) -> Edit:
    session = await stack.enter_async_context(mcp_session(setting.transport("mcp-editor"), env=setting.daemon.env))
    (setting.daemon.workspace / "transport.py").write_text(setting.text, encoding="utf-8")

    async def edit(old: str, new: str) -> None:
        changes = [{"search": old, "replace": new}]
        said = await session.call("edit_file", {"path": "transport.py", "changes": changes})
        assert '"applied"' in said, said

    return edit


async def largefile_edit(setting: Setting, stack: AsyncExitStack, path: str) -> Edit:
    """What edits a file through the server."""
    env = {**os.environ, "LARGEFILE_BACKUP_DIR": str(setting.peers_work / "backups")}
    session = await stack.enter_async_context(mcp_session(setting.largefile.command, env=env))

    async def edit(old: str, new: str) -> None:
        wanted = {
            "absolute_file_path": path,
            "changes": [{"search": old, "replace": new}],
            "fuzzy": False,
            "preview": False,
        }
        said = await session.call("edit_content", wanted)
        assert '"success": true' in said, said[:500]

    return edit


async def filesystem_edit(setting: Setting, stack: AsyncExitStack, path: str) -> Edit:
    """The same through the reference server."""
    session = await stack.enter_async_context(mcp_session(setting.filesystem.command))

    async def edit(old: str, new: str) -> None:
        await session.call("edit_file", {"path": path, "edits": [{"oldText": old, "newText": new}]})

    return edit


def _copy(setting: Setting, peer: Peer) -> str:
    path = setting.peers_work / f"{peer.name.split()[0]}.py"
    path.write_text(setting.text, encoding="utf-8")
    return str(path)
