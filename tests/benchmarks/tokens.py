"""What a model has to read and write for the workflows of agents, beside the same tasks by reading whole files.

Counted are the tools' names, descriptions and input schemas and the server's instructions, once, and of every call its
arguments and the text of its answer, each once, by `estimate_tokens`. Reading whole files is given all that it can't
find by itself: the paths of the files that matter.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from orchestrator.core.text.answer_space import estimate_tokens
from tests.benchmarks.measuring import Row, Samples, Target
from tests.benchmarks.setting import Rows, Setting
from tests.end_to_end import workflows as w
from tests.end_to_end.workspace_factory import Place

ALL = "all, with definitions"
AT_MOST_A_THIRD = Target(at_least=3)


class Counted:
    """One session's tools; counts what a model would see of them."""

    def __init__(self, client: Client) -> None:
        self._client, self.tokens = client, 0

    async def definitions(self) -> int:
        """The tools, and what is said about them."""
        tools = (await self._client.list_tools()).tools
        shown = [{"name": tool.name, "description": tool.description, "schema": tool.input_schema} for tool in tools]
        return estimate_tokens(_json(shown)) + estimate_tokens(self._client.instructions or "")

    async def __call__(self, tool: str, /, **arguments: Any) -> str:
        result = await self._client.call_tool(tool, arguments)
        text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
        assert not result.is_error, text[:500]
        self.tokens += estimate_tokens(_json(arguments)) + estimate_tokens(text)
        return text


async def rows(setting: Setting) -> Rows:
    """With the core tools, and with those of largefile."""
    name, theirs = setting.filesystem.name, dict[str, int]()
    if setting.filesystem.command:
        with tempfile.TemporaryDirectory(prefix="o-", dir="/var/tmp") as base:
            theirs = await _of_whole_files(setting, Path(base).resolve())
    found: Rows = []
    for toolset, offered in (("core", w.CORE), ("largefile", w.LARGEFILE)):
        for task, tokens in (await _ours(toolset, offered)).items():
            work = f"tokens, {toolset} tools: {task}"
            samples = Samples([theirs[task]]) if theirs else Samples([], setting.filesystem.trouble)
            target = AT_MOST_A_THIRD if task == ALL else Target()
            peer = f"{name}, whole files"
            found.append(
                Row(work=work, ours=Samples([tokens]), peer=peer, theirs=samples, unit="tokens", target=target)
            )
    return found


async def _ours(toolset: str, offered: Mapping[str, w.Workflow]) -> dict[str, int]:
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/var/tmp")).resolve()
    place = Place(base)
    try:
        w.lay_out(place.workspace)
        async with _counted(place.transport("--toolset", toolset, agent="counted")) as call:
            taken = await _taken(call, place.workspace, offered)
            place.note()
            return taken
    finally:
        place.clear()
        shutil.rmtree(base)


async def _of_whole_files(setting: Setting, root: Path) -> dict[str, int]:
    w.lay_out(root)
    node, script, *_ = setting.filesystem.command
    async with _counted(StdioServerParameters(command=node, args=[script, str(root)])) as call:
        return await _taken(call, root, WHOLE_FILES)


@asynccontextmanager
async def _counted(server: StdioServerParameters) -> AsyncIterator[Counted]:
    async with Client(server, mode="legacy") as client:
        yield Counted(client)


async def _taken(call: Counted, root: Path, offered: Mapping[str, w.Workflow]) -> dict[str, int]:
    taken = dict[str, int]()
    for task, workflow in offered.items():
        before = call.tokens
        await workflow(call, root)
        taken[task] = call.tokens - before
    return {**taken, ALL: call.tokens + await call.definitions()}


async def _analyse(call: w.Calls, root: Path) -> None:
    for path in (w.SEARCH, w.FUZZY, "orchestrator/core/text/regex.py"):
        assert "def spots(" in await call("read_text_file", path=str(root / path))


async def _fix(call: w.Calls, root: Path) -> None:
    path = str(root / w.TOKENS)
    assert w.WRONG in await call("read_text_file", path=path)
    await call("edit_file", path=path, edits=[{"oldText": w.WRONG, "newText": w.RIGHT}])


async def _rename(call: w.Calls, root: Path) -> None:
    before = w.occurrences(root, w.OLD)
    await call("read_multiple_files", paths=[str(root / path) for path in before])
    for old, new in ((w.OLD, w.NEW), (w.NEW, w.OLD)):
        for path, lines in w.occurrences(root, old).items():
            edits = [{"oldText": line.strip(), "newText": line.strip().replace(old, new)} for _, line in lines]
            await call("edit_file", path=str(root / path), edits=edits)
    assert w.occurrences(root, w.OLD) == before


async def _review(call: w.Calls, root: Path) -> None:
    """Nothing but reading them tells in which files there is something to do."""
    paths = [str(path) for path in sorted((root / w.READS).glob("*.py"))]
    seen = await call("read_multiple_files", paths=paths)
    assert all(comment in seen for comment in w.COMMENTS.values())


async def _analyse_log(call: w.Calls, root: Path) -> None:
    """The server can read an end; for the errors, and what is around one, it reads all."""
    path = str(root / w.LOG)
    await call("read_text_file", path=path, tail=w.TAIL)
    assert w.log_line(w.ERRORS) in await call("read_text_file", path=path)


WHOLE_FILES: Mapping[str, w.Workflow] = dict(zip(w.CORE, (_analyse, _fix, _rename, _review, _analyse_log), strict=True))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
