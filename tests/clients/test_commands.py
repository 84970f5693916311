"""Hints as a person reads them: with commands of the command line, and only with such as there are."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from orchestrator.api import results as r
from orchestrator.api.framing import Refusal
from orchestrator.api.operations import BY_NAME
from orchestrator.clients.cli import orchestrator
from orchestrator.clients.render.answers import noticed, refused, rendered
from orchestrator.clients.render.commands import COMMANDS, for_people
from tests.docs.documents import errors

EXPRESSION = r"""f\(["x'\)]+"""


@pytest.mark.parametrize(
    ("hint", "read"),
    [
        ("Use list_files for directories.", "Use `orchestrator files` for directories."),
        ("Read the file (read_file) first.", "Read the file (`orchestrator open`) first."),
        ("Or write_file(mode=truncate).", "Or `orchestrator write`."),
        ("`orchestrator up` makes it.", "`orchestrator up` makes it."),
        ("Withdraw it with choice 'current', or await_change.", "Withdraw it with choice 'current'."),
        (
            "search_content takes: pattern, max_results. Send them with the types of its schema.",
            "`orchestrator search --help` says what it takes.",
        ),
        (
            "Did you mean name? agent_add takes: name, class.",
            "Did you mean name? `orchestrator agent add --help` says what it takes.",
        ),
    ],
)
def test_a_hint_names_commands(hint: str, read: str) -> None:
    assert for_people(hint) == read
    assert list(refused(Refusal(code="denied", message="no", hint=hint)))[1] == f"  {read}"


@pytest.mark.parametrize(
    ("call", "typed"),
    [
        pytest.param(
            f"search_content(pattern={EXPRESSION!r}, path='src', mode='regex')",
            ["search", EXPRESSION, "src", "--mode", "regex"],
            id="an expression with brackets and quotes",
        ),
        pytest.param(
            'read_file(path="a b.py", start=412, at="@7", delta=true)',
            ["open", "a b.py", "--start", "412", "--at", "@7", "--delta"],
            id="a path with a blank",
        ),
        pytest.param('read_lines(path="a", start=1, end=9)', ["open", "a", "--start", "1", "--end", "9"], id="lines"),
        pytest.param('blame(path="a", start=3)', ["blame", "a", "--start", "3"], id="a name that is a word"),
        pytest.param(
            "find_files(glob='*.py')", ["files", "--recursive", "--glob", "*.py"], id="an option in the words"
        ),
        pytest.param(
            'changes_since(version="@3", skip=9, globs=["a/", "*.b"])',
            ["since", "@3", "--skip", "9", "--glob", "a/", "--glob", "*.b"],
            id="a list",
        ),
        pytest.param('search_content(path="a", pattern=…)', ["search"], id="left open"),
        pytest.param("search_content(path='a', mode='fuzzy')", ["search"], id="without what is required"),
    ],
)
def test_a_call_is_a_command_that_can_be_typed(call: str, typed: list[str]) -> None:
    shown = for_people(f"Send {call}, or stop.")
    assert shown.startswith("Send `orchestrator ")
    assert shown.endswith("`, or stop.")
    words = shlex.split(shown.split("`")[1])[1:]
    assert words == typed
    command: click.Command = orchestrator
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    command.make_context(words[0] if words else "", words, resilient_parsing=not words)


@pytest.mark.parametrize(
    ("message", "read"),
    [
        ("It waits as @7. Send it again (supersedes='@7'), or await_change('@7').", "It waits as @7. Send it again."),
        ("Its content is not shown; await_change('@7').", "Its content is not shown."),
    ],
)
def test_a_conflict_shows_a_person_nothing_that_agents_send(message: str, read: str) -> None:
    answer = r.ChangeAnswer(status="conflict", message=message, conflict="@7")
    first, *_, last = map(click.unstyle, rendered(answer))
    assert first == f"conflict @7: {read}"
    assert last == "  Look at it: orchestrator conflicts show @7"


def test_a_notice_shows_what_others_wrote_without_moving_the_cursor() -> None:
    notice = r.Notice(
        path="a\x1b", kind="changed", since="@3", by=("bob",), version_id="@4", diff="+x\x1b[2J\n+y\x0bz\n"
    )
    lines = [click.unstyle(line) for line in noticed(notice)]
    assert lines[0].startswith("notice: a\\x1b: ")
    assert lines[1:] == ["  +x\\x1b[2J", "  +y\\x0bz"]


@pytest.mark.parametrize("words", COMMANDS.values())
def test_every_command_is_there(words: str) -> None:
    command: click.Command = orchestrator
    for word in words.split():
        if word.startswith("--"):
            assert any(word in option.opts for option in command.get_params(click.Context(command)))
        else:
            assert isinstance(command, click.Group)
            command = command.commands[word]


def test_no_usual_hint_names_an_operation_to_a_person() -> None:
    named = {word for error in errors() for word in re.findall(r"[a-z]+_[a-z_]+", for_people(error.hint))}
    assert not named & BY_NAME.keys()
    assert any(for_people(error.hint) != error.hint for error in errors())
