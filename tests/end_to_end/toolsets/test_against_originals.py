"""A client of another server changes its command line and nothing else: names, parameters and answers are the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.api.toolsets import DROP_IN
from orchestrator.servers.toolsets.drop_in import DROP_IN as ENTRIES
from tests.end_to_end.toolsets.original_answers import answers, lay_out, recorded, tools_of
from tests.end_to_end.toolsets.steps import STEPS
from tests.end_to_end.workspace_factory import Place

pytestmark = pytest.mark.anyio

NOT_COMPARED = {
    "read_file": ("start",),  # the original lacks it: a text that was cut can be read on
    "read_text_file": ("start",),
    "get_overview": ("changed_lines",),  # a list of numbers and words, which short schemas do not tell
    "edit_content": ("changes",),  # ours says what is in it, and takes the older form in place of it
}

NO_SUCH_ANSWERS = {"read_media_file"}
"""No sound, and no other file as a blob."""


def in_order(node: Any) -> Any:
    """A tree with the children of each folder by name: the original lists them as the disk has them."""
    if isinstance(node, list):
        return sorted((in_order(item) for item in node), key=lambda item: str(item["name"]))
    return {key: in_order(value) if key == "children" else value for key, value in node.items()}


def _members(said: Any, names: list[str]) -> Any:
    """These members of a document, at any depth, in lists those of each."""
    if isinstance(said, list):
        return [_members(one, names) for one in said]
    if not names or not isinstance(said, dict):
        return said
    return {name: _members(said[name], names) for name in names if name in said}


def comparable(answer: dict[str, Any], same: str) -> Any:
    text = answer["text"]
    match same:
        case "text":
            return answer
        case "lines":
            return {"text": sorted(text.split("\n")), "error": answer["error"]}
        case "tree":
            return {"text": in_order(json.loads(text)), "error": answer["error"]}
        case "start":  # how an error begins, and whether it is one
            return {"text": text[:20], "error": answer["error"]}
        case "begins":  # more stands behind it
            return {"text": text.partition("\n\n")[0], "error": answer["error"]}
        case document if document.startswith("json"):  # the members that are named, or all
            said = json.loads(text)
            return {"said": _members(said, document.split()[1:]), "error": answer["error"]}
        case reason:
            assert " " in reason, "a difference has a reason"
            return {"error": answer["error"]}


@pytest.mark.parametrize("name", STEPS)
async def test_as_the_original_answered(place: Place, name: str) -> None:
    lay_out(place.workspace)
    original = recorded(name)
    async with place.client("alice", "--toolset", name, mode="legacy") as client:
        assert client.instructions is None
        tools = await tools_of(client)
        found = await answers(client, place.workspace, STEPS[name])
    for tool in tools:
        for parameters in (tools[tool], original["tools"][tool]):
            for parameter in NOT_COMPARED.get(tool, ()):
                parameters["properties"].pop(parameter, None)
                parameters["required"] = [one for one in parameters["required"] if one != parameter]
    for tool in NO_SUCH_ANSWERS & tools.keys():
        tools[tool]["answers"] = original["tools"][tool]["answers"]
    assert tools == original["tools"]
    ours = {step.name: comparable(found[step.name], step.same) for step in STEPS[name]}
    theirs = {step.name: comparable(original["answers"][step.name], step.same) for step in STEPS[name]}
    assert ours == theirs


@pytest.mark.parametrize("name", DROP_IN)
def test_the_names_are_written_down_once(name: str) -> None:
    """The transports, which load no tools, and policies know a set's tools by their names."""
    assert tuple(tool.name for tool in ENTRIES[name].tools) == DROP_IN[name]
