"""The examples of LLM_FILE_ACCESS.md, called through the real stdio transport in the order of the document."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from orchestrator.api.failures import params_from
from orchestrator.api.operations import BY_NAME
from orchestrator.core.errors import OrchestratorError
from tests.daemon.daemon_process import RunningDaemon, running
from tests.docs.documents import GUIDE, Block, blocks, part
from tests.docs.matching import Versions
from tests.docs.mcp_stdio import ToolAnswer, Transport

TEXT = GUIDE.read_text(encoding="utf-8")
EXAMPLES = blocks(part(TEXT, "examples"), "json ", "text ")
FILES = {"Makefile": "test:\n\tpython -m pytest\n", ".env": "KEY=s3cret\n"}
"""Those that the document names but does not show."""


def calls() -> list[tuple[str, dict[str, Any], list[Block]]]:
    """Agent, call, and the blocks that show its answer."""
    found: list[tuple[str, dict[str, Any], list[Block]]] = []
    for block in EXAMPLES:
        if block.info.startswith("json call "):
            found.append((block.info.rpartition(" ")[2], json.loads(block.text), []))
        else:
            found[-1][2].append(block)
    return found


def test_every_call_is_read_as_the_catalogue_says() -> None:
    for _, call, shown in calls():
        assert shown, f"{call} has no answer"
        refused = None
        try:
            params_from(BY_NAME[call["tool"]], call["arguments"])
        except OrchestratorError as error:
            refused = error.code
        if refused is not None:
            assert shown[0].info == "json refusal", f"{call}: {refused}"
            assert json.loads(shown[0].text)["code"] == refused


def test_every_answer_is_the_one_that_comes(base: Path) -> None:
    cart = blocks(TEXT[: TEXT.index("<!-- begin: examples -->")], "python")[-1].text
    for name, content in {"cart.py": cart, **FILES}.items():
        (RunningDaemon(base).workspace / name).write_text(content)
    versions = Versions()
    with running(base) as daemon, ExitStack() as transports:
        agents: dict[str, Transport] = {}
        for agent, call, shown in calls():
            if agent not in agents:
                agents[agent] = transports.enter_context(Transport(daemon, agent))
            arguments = json.loads(versions.real(json.dumps(call["arguments"])))
            answer = agents[agent].call(call["tool"], arguments)
            for block in shown:
                assert _agrees(versions, block, answer), f"{call}\nshown: {block.text}\ncame: {answer}"


def _agrees(versions: Versions, block: Block, answer: ToolAnswer) -> bool:
    match block.info:
        case "json answer":
            return not answer.is_error and versions.match_json(json.loads(block.text), answer.structured)
        case "json refusal":
            return answer.is_error and versions.match_json(json.loads(block.text), json.loads(answer.texts[0]))
        case "text answer":
            return not answer.is_error and len(answer.texts) == 1 and _same_text(versions, block, answer.texts[0])
        case "text block":
            return _same_text(versions, block, answer.texts[1])
        case _:
            raise AssertionError(f"what is {block.info!r}?")


def _same_text(versions: Versions, block: Block, text: str) -> bool:
    return versions.match_lines(block.text.removesuffix("\n").split("\n"), text.removesuffix("\n").split("\n")) is None
