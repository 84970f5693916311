"""What the documents name exists: files, commands, targets, codes, fields, and the tables that come from the code."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from orchestrator.api.operations import BY_NAME
from orchestrator.api.results import ChangeAnswer, FileFacts
from orchestrator.clients.cli import context, orchestrator
from orchestrator.clients.stdio_proxy import main
from orchestrator.core.errors import OrchestratorError
from orchestrator.core.events.base import Origin, Recorded
from orchestrator.core.projections.file_rows import FileEntry
from orchestrator.core.text.answer_space import estimate_tokens
from tests.docs.documents import (
    DOCUMENTS,
    ERRORS,
    EVENT_KINDS,
    GUIDE,
    HOLDERS,
    OPERATIONS,
    README,
    REFERENCE,
    ROOT,
    blocks,
    errors,
    generated,
    part,
)

ALL = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_COMMAND = re.compile(r"(?<![\w@.=-])orchestrator (?!--)[a-z][^;|]*")
_PATH = re.compile(
    r"(?:orchestrator|tests|docs|policies|deploy|core|api|clients|servers|engine|journal|workspace)/[\w/.@-]+"
)


GLOBS = ("docs/api",)
"""What looks like a path, and is a pattern of an example."""


def text_of(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def prose(document: Path) -> str:
    """A document without its fenced blocks."""
    text = text_of(document)
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """What a link can point to in a document, as GitHub names its headings."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


# --- files ---------------------------------------------------------------------------------


@ALL
def test_links_lead_somewhere(document: Path) -> None:
    for link in _LINK.findall(text_of(document)):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(text_of(target)), link


@ALL
def test_paths_that_are_named_exist(document: Path) -> None:
    for code in _CODE.findall(prose(document)):
        if not _PATH.fullmatch(code) or code in GLOBS:
            continue
        assert any((base / code).exists() for base in (ROOT, ROOT / "orchestrator", document.parent)), code


# --- commands ------------------------------------------------------------------------------


def commands(document: Path) -> list[str]:
    """Every `orchestrator …` command line that a document shows, without comments and redirections."""
    shown = [code for code in _CODE.findall(prose(document)) if code.startswith("orchestrator ")]
    for block in blocks(text_of(document), "console", "sh"):
        for line in block.text.splitlines():
            typed = line.removeprefix("$ ")
            if block.info == "console" and typed == line:
                continue
            shown += [match[0].strip() for match in _COMMAND.finditer(typed)]
    cut = [re.split(r"\s(?:#|>|<|2>)", command)[0].rstrip(") ") for command in shown]
    return [command[:-1] if command.count('"') % 2 else command for command in cut]


@ALL
def test_commands_are_understood(document: Path) -> None:
    for command in commands(document):
        words = shlex.split(command)[1:]
        if words[0].startswith("http://"):
            continue  # the server's name in another program's command
        if words[0] == "mcp":
            assert all(f"{word} " in main.USAGE for word in words if word.startswith("--")), command
            continue
        try:
            _parse(orchestrator, words)
        except click.UsageError as error:
            pytest.fail(f"{command}: {error.format_message()}")


def _parse(command: click.Command, words: list[str], parent: click.Context | None = None) -> None:
    """Parse as a call would, and run nothing."""
    found = command.make_context(command.name, list(words), parent=parent, obj=context.Settings())
    if isinstance(command, click.Group):
        rest = [*found._protected_args, *found.args]
        if not rest and command.invoke_without_command:
            return
        _, below, rest = command.resolve_command(found, rest)
        assert below is not None
        _parse(below, rest, found)


def test_the_command_test_sees_commands() -> None:
    assert "orchestrator approvals approve @44" in commands(README)
    assert any(command.startswith("orchestrator agent add release-bot") for command in commands(README))
    with pytest.raises(click.UsageError):
        _parse(orchestrator, ["log", "--nothing"])
    with pytest.raises(click.UsageError):
        _parse(orchestrator, ["nothing"])


def test_makefile_targets_exist() -> None:
    makefile = text_of(ROOT / "Makefile")
    for document in DOCUMENTS:
        for target in re.findall(r"(?:`|\$ )make ([a-z0-9]+)", text_of(document)):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{document.name}: make {target}"


# --- settings of clients -------------------------------------------------------------------


@ALL
def test_settings_are_well_formed(document: Path) -> None:
    for block in blocks(text_of(document), "json", "toml"):
        given: Any = json.loads(block.text) if block.info.startswith("json") else tomllib.loads(block.text)
        for command in _transports(given):
            words = command[command.index("mcp") + 1 :]
            assert Path(command[0]).is_absolute(), command
            assert all(f"{word} " in main.USAGE for word in words if word.startswith("--")), command


def _transports(given: Any) -> list[list[str]]:
    """The command lines of every server named `orchestrator` in a client's settings."""
    match given:
        case {"command": str(program), "args": list(arguments)}:
            return [[program, *arguments]]
        case {"command": [*command]} if "mcp" in command:
            return [command]
        case dict():
            return [transport for value in given.values() for transport in _transports(value)]
        case _:
            return []


# --- tables --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(generated()))
def test_generated_tables_are_those_of_the_code(name: str) -> None:
    wanted = generated()[name]
    assert part(text_of(HOLDERS[name]), name) == wanted, (
        f"run `make docs`, or paste between the markers of {name}:\n{wanted}"
    )


def test_every_code_is_in_the_table() -> None:
    table = part(text_of(ERRORS), "errors")
    assert set(re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE)) == {error.code for error in errors()}
    assert {"stale_base", "internal", "token_unreadable", "changed_while_written"} <= {error.code for error in errors()}
    assert OrchestratorError not in errors()


@pytest.mark.parametrize(
    ("document", "heading", "fields"),
    [
        pytest.param(
            OPERATIONS, "## Registry schema", [f.name for f in msgspec.structs.fields(FileEntry)], id="registry"
        ),
        pytest.param(
            OPERATIONS, "shows one entry", [f.encode_name for f in msgspec.structs.fields(FileFacts)], id="file_info"
        ),
        pytest.param(
            EVENT_KINDS, "stands an envelope", [f.name for f in msgspec.structs.fields(Recorded)], id="envelope"
        ),
        pytest.param(EVENT_KINDS, "field of `origin`", [f.name for f in msgspec.structs.fields(Origin)], id="origin"),
        pytest.param(
            OPERATIONS,
            "## The answer of a change",
            [f.name for f in msgspec.structs.fields(ChangeAnswer) if f.name != "shown"],
            id="change",
        ),
    ],
)
def test_schema_tables_name_every_field(document: Path, heading: str, fields: list[str]) -> None:
    text = text_of(document)
    table = text[text.index("| ", text.index(heading)) :].split("\n\n", 1)[0]
    cells = [row.split("|")[1] for row in table.splitlines()[2:]]
    assert sorted(name for cell in cells for name in re.findall(r"`([^`]+)`", cell)) == sorted(fields)


def test_exit_codes_are_those_of_the_command_line() -> None:
    table = text_of(README)[text_of(README).index("## Exit codes") :].split("\n## ")[0]
    reported = {int(number): meaning for number, meaning in re.findall(r"^\| (\d) \| (.*) \|$", table, re.MULTILINE)}
    assert sorted(reported) == list(range(6))
    codes = (context.DONE, context.REFUSED, context.USAGE, context.WAITING, context.UNREACHABLE, context.INTERNAL)
    words = ("done", "refused", "usage", "waits", "reached", "defect")
    for code, word in zip(codes, words, strict=True):
        assert word in reported[code]


def test_statuses_are_all_explained() -> None:
    text = text_of(OPERATIONS)
    kinds = msgspec.inspect.type_info(ChangeAnswer)
    assert isinstance(kinds, msgspec.inspect.StructType)
    status = next(field.type for field in kinds.fields if field.name == "status")
    assert isinstance(status, msgspec.inspect.LiteralType)
    row = next(line for line in text.splitlines() if line.startswith("| `status` |"))
    assert set(re.findall(r"`(\w+)`", row)) - {"status", "await_change"} == set(status.values)


@pytest.mark.parametrize("document", REFERENCE, ids=lambda path: path.name)
def test_operations_that_the_prose_names_exist(document: Path) -> None:
    known = {*BY_NAME, *(error.code for error in errors())}
    for name in re.findall(
        r"`([a-z]+_(?:file|files|change|content|patch|status|history|diff|conflict|conflicts))`", prose(document)
    ):
        assert name in known or name in ("content", "last_change"), name


# --- what an agent reads ---------------------------------------------------------------------

SECTIONS = {
    "Overview": (),
    "Guidelines for models": (),
    "Tool calls": ("docs/reference/operations.md",),
    "Examples": (),
    "Permission and approval": ("policies/README.md", "policies/default.toml"),
    "Conflicts": (),
    "Registry schema": ("docs/reference/operations.md#registry-schema",),
    "Audit format": ("docs/reference/events.md",),
    "Errors": ("docs/reference/errors.md",),
    "Safety notes": ("docs/threat-model.md",),
    "Reset and rotation": ("docs/operations.md",),
}
"""What LLM_FILE_ACCESS.md is to tell, and where each section says that there is more."""


def test_the_guide_for_agents_is_short() -> None:
    assert estimate_tokens(text_of(GUIDE)) <= 6500


def test_the_guide_for_agents_has_every_section() -> None:
    found = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text_of(GUIDE), re.MULTILINE | re.DOTALL))
    assert list(found) == list(SECTIONS)
    for heading, links in SECTIONS.items():
        assert set(links) <= set(_LINK.findall(found[heading])), heading
        assert f"(#{heading.lower().replace(' ', '-')})" in text_of(GUIDE).split("## ")[0], f"{heading} is not listed"
