"""The outline of a 20,000-line Python file: of a content that nobody asked about before, and of one that is known."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path

from tests.benchmarks.measuring import Row, Samples, Target, Work, in_turns
from tests.benchmarks.peers import mcp_session
from tests.benchmarks.setting import Rows, Setting

PARSED = (
    "parsing and the query for definitions, both compiled, take 90 ms of it on the machine where the peer takes 180."
)
CALLED = "what is left is an MCP call with its event: see the group `calls` for what the least of them takes."

Outline = Callable[[], Awaitable[object]]


async def rows(setting: Setting) -> Rows:
    """Beside largefile, asked in the same way for a file of its own. A new content is written within the time."""
    async with AsyncExitStack() as stack:
        places = {"ours": setting.daemon.workspace / "outline.py", "theirs": setting.peers_work / "outline.py"}
        for place in places.values():
            place.write_text(setting.text, encoding="utf-8")
        asked: dict[str, Outline] = {"ours": await _ours(setting, stack)}
        if setting.largefile.command:
            asked["theirs"] = await _theirs(setting, stack, places["theirs"])
        warm = await in_turns(asked, setting.times(20), warm_up=2)
        changed = {name: _of_new(setting, places[name], ask) for name, ask in asked.items()}
        cold = await in_turns(changed, setting.times(10), warm_up=1)
    none = Samples([], setting.largefile.trouble)
    return [
        Row(
            work=f"outline, 20,000-line Python file, {name}",
            ours=taken["ours"],
            peer=setting.largefile.name,
            theirs=taken.get("theirs", none),
            target=Target(at_least=least, why_missed=why),
        )
        for name, taken, least, why in (("new content", cold, 2.0, PARSED), ("known content", warm, 60.0, CALLED))
    ]


async def _ours(setting: Setting, stack: AsyncExitStack) -> Outline:
    session = await stack.enter_async_context(mcp_session(_full(setting), env=setting.daemon.env))

    async def ask() -> object:
        said = await session.call("get_overview", {"path": "outline.py"})
        assert "20000 lines" in said or "20001 lines" in said, said[:300]
        return said

    return ask


def _full(setting: Setting) -> tuple[str, ...]:
    return (*setting.transport("outliner"), "--toolset", "full")


async def _theirs(setting: Setting, stack: AsyncExitStack, place: Path) -> Outline:
    session = await stack.enter_async_context(mcp_session(setting.largefile.command))

    async def ask() -> object:
        return await session.call("get_overview", {"absolute_file_path": str(place)})

    return ask


def _of_new(setting: Setting, place: Path, ask: Outline) -> Work:
    numbers = count()

    async def work() -> object:
        place.write_text(f"{setting.text}# {next(numbers)}\n", encoding="utf-8")
        return await ask()

    return work
