"""Every operation has its command or is one that programs alone call; options carry what the parameters say."""

from __future__ import annotations

from typing import Annotated

import click
import msgspec
import pytest
from msgspec import Meta

from orchestrator.api.administration import ApprovalInfo, Approvals
from orchestrator.api.journal_operations import JournalEntry, JournalPage
from orchestrator.api.operation import Operation
from orchestrator.api.operations import OPERATIONS
from orchestrator.api.parameters import AnyPath, Params, PathText, Version
from orchestrator.api.results import ChangeAnswer, Done, FileFacts, FileVersion, History, Result, SearchResult
from orchestrator.clients.cli import orchestrator
from orchestrator.clients.cli.operation_commands import OperationCommand
from orchestrator.clients.render import rendered
from orchestrator.clients.render.generic import COLUMNS, sized, when
from orchestrator.core.errors import plural

WITHOUT = {
    *("read_lines", "move_file", "delete_file", "create_directory", "begin_task", "end_task", "await_change"),
    *("read_files", "approver_create", "approver_open", "tree_at", "content_at", "native_before", "native_after"),
    *("report_tool_call", "open_worktree"),
}
"""Operations that no command is for; `up` makes the approver code, `approvals` gives it, `replay` reads trees.

The last four are what `hook`, which is no command of click's, and `run` call."""


def test_every_other_operation_has_a_command() -> None:
    assert {operation.name for operation in OPERATIONS if not operation.words} == WITHOUT


class Count(Params, frozen=True):
    path: PathText
    since: Annotated[Version, Meta(description="Only what came after, '@N'.")]
    below: Annotated[AnyPath | None, Meta(description="Where.")] = None
    globs: tuple[str, ...] = ()
    quick: bool = False
    most: Annotated[int, Meta(description="At most.")] = 7


def test_a_new_operation_is_a_command_with_the_options_of_its_parameters() -> None:
    command = OperationCommand(Operation("count_lines", Count, Done, "Count lines: how many.", operator_only=True))
    context = click.Context(command, info_name="lines")
    assert (command.name, command.get_short_help_str(80)) == ("count lines", "Count lines.")
    usage = " ".join(command.get_help(context).split())
    assert usage.startswith("Usage: lines [OPTIONS] PATH @N Count lines: how many.")
    for option in ("--below TEXT Where.", "--glob TEXT", "--quick", "--most INTEGER At most. [default: 7]", "--json"):
        assert option in usage
    with pytest.raises(click.MissingParameter):
        command.make_context("lines", ["a.py"])
    typed = command.make_context("lines", ["a.py", "@3", "--glob", "*.c", "--glob", "*.h", "--quick"]).params
    assert typed == {"path": "a.py", "since": "@3", "below": None, "globs": ("*.c", "*.h"), "quick": True, "most": 7}


class Lines(Result, frozen=True, kw_only=True):
    total_lines: int
    last_modified: int | None = None
    whole: bool = True
    paths: tuple[str, ...] = ("a", "b\x1b")


def test_a_result_without_a_form_of_its_own_comes_as_names_and_values() -> None:
    assert list(rendered(Lines(total_lines=3))) == [
        "total lines:  3",
        "whole:        yes",
        "paths:        a",
        "paths:        b\\x1b",
    ]


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        pytest.param(None, "", id="not known"),
        pytest.param(0, "0 B", id="nothing"),
        pytest.param(999, "999 B", id="bytes"),
        pytest.param(1000, "0.98 KiB", id="just over"),
        pytest.param(12345, "12.1 KiB", id="KiB"),
        pytest.param(1023 * 1024, "1.00 MiB", id="not 1023 KiB"),
        pytest.param(1234 * 1024**3, "1.21 TiB", id="TiB"),
        pytest.param(2**63, "8.00 EiB", id="the largest"),
    ],
)
def test_sizes_are_shown_to_three_digits(count: int | None, shown: str) -> None:
    assert sized(count) == shown


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        pytest.param(FileFacts(path="a", exists=False), ["path:    a", "exists:  no"], id="an absent file"),
        pytest.param(
            SearchResult(total=0, files_searched=2, files_left_out=0),
            ["0 matching lines in 2 files"],
            id="a search for nothing",
        ),
        pytest.param(JournalPage(head="@9"), ["no event fits"], id="no event"),
        pytest.param(
            JournalPage(
                head="@9",
                entries=(
                    JournalEntry(seq="@2", at=0, kind="r", stream="s", event={"seen": {"path": "a.py", "version": 1}}),
                    JournalEntry(seq="@3", at=0, kind="c", stream="s", event={"paths": [{"path": "b"}, {"path": "c"}]}),
                    JournalEntry(seq="@4", at=0, kind="l", stream="s", event={"globs": ["*"], "paths": ["d", "d"]}),
                ),
            ),
            [f"@2  {when(0)}  r  a.py", f"@3  {when(0)}  c  b, c", f"@4  {when(0)}  l  d"],
            id="events name their files",
        ),
        pytest.param(
            JournalPage(
                head="@9",
                entries=tuple(
                    JournalEntry(seq="@8", at=0, kind=kind, stream="s", event=event, approval=approval)
                    for kind, approval, event in (
                        ("approval_granted", "@3", {"approval": 3, "by": "person:ada", "unseen": True}),
                        ("read_refused", None, {"operation": "o", "code": "denied", "rule": "keys", "path": ".env"}),
                        ("change_applied", None, {"provenance": {"grants": [5]}, "paths": [{"path": "a.py"}]}),
                        ("change_applied", "@3", {"provenance": {"approval": 3}, "paths": [{"path": "a.py"}]}),
                        ("change_applied", None, {"provenance": {"resolves": 2, "accepted_by": "person:ada"}}),
                        ("approval_denied", "@3", {"approval": 3, "by": "ada", "reason": "keep them"}),
                        ("agent_added", None, {"name": "bob"}),
                        ("external_file_changed", None, {"path": "a.py", "lease": 6, "lease_holder": "ada"}),
                        ("budget_exceeded", None, {"budget": "tokens", "period": "day", "most": 9, "used": 10}),
                        ("answer_shown", None, {"operation": "list_conflicts"}),
                    )
                ),
            ),
            [
                f"@8  {when(0)}  approval_granted             approval @3, unseen, by person:ada",
                f"@8  {when(0)}  read_refused           .env  o, code denied, rule keys",
                f"@8  {when(0)}  change_applied         a.py  grant @5",
                f"@8  {when(0)}  change_applied         a.py  approval @3",
                f"@8  {when(0)}  change_applied               conflict @2, accepted by person:ada",
                f"@8  {when(0)}  approval_denied              approval @3, by ada, keep them",
                f"@8  {when(0)}  agent_added                  agent bob",
                f"@8  {when(0)}  external_file_changed  a.py  lease @6, under ada's lease",
                f"@8  {when(0)}  budget_exceeded              tokens, per day",
                f"@8  {when(0)}  answer_shown                 list_conflicts",
            ],
            id="events name what they decide and why",
        ),
        pytest.param(
            Approvals(
                approvals=(
                    ApprovalInfo(
                        approval="@7",
                        state="waiting",
                        operation="delete_file",
                        paths=tuple("abcdefgh"),
                        path_count=37,
                        agent="bob",
                        since=0,
                        expires_at=1,
                    ),
                )
            ),
            [f"@7  {when(0)}  bob  delete_file  a, b, c, d, e, f and 31 more"],
            id="a request names how many files it has",
        ),
        pytest.param(
            History(
                path="a.py",
                versions=(FileVersion(version_id="@3", kind="external", at=0, lease_holder="ada"),),
            ),
            [f"@3  {when(0)}  outside  under ada's lease  external"],
            id="a write under a lease is nobody's",
        ),
        pytest.param(
            History(
                path="a.py",
                versions=(
                    FileVersion(
                        version_id="@3", kind="change", at=0, agent="bob", operation="o", approver="ada", reason="why"
                    ),
                ),
            ),
            [f"@3  {when(0)}  bob  o  (approved by ada)  why"],
            id="a version names who approved it",
        ),
    ],
)
def test_an_answer_that_holds_nothing_says_so(answer: Result, shown: list[str]) -> None:
    assert list(rendered(answer)) == shown


def test_a_diff_that_was_cut_is_shown_whole_elsewhere() -> None:
    rest = "shown: 1 of 9 changed lines; list_conflicts(conflict='@5') shows all of it"
    answer = ChangeAnswer(
        status="conflict", message="", conflict="@5", diff="-a\n", diff_truncated=True, diff_rest=rest
    )
    said = "… the diff goes on: shown: 1 of 9 changed lines; `orchestrator conflicts show @5` shows all of it"
    assert said in list(rendered(answer))


@pytest.mark.parametrize(
    ("count", "noun", "shown"),
    [
        (1, "file", "1 file"),
        (0, "file", "0 files"),
        (2, "day", "2 days"),
    ],
)
def test_plural(count: int, noun: str, shown: str) -> None:
    assert plural(count, noun) == shown


def test_every_command_shows_its_help() -> None:
    def walk(command: click.Command, name: str) -> None:
        context = click.Context(command, info_name=name)
        assert command.get_help(context).startswith(f"Usage: {name}")
        if isinstance(command, click.Group):
            for below in command.list_commands(context):
                walk(command.commands[below], f"{name} {below}")

    walk(orchestrator, "orchestrator")


@pytest.mark.parametrize("row", COLUMNS, ids=lambda row: row.__name__)
def test_a_row_has_columns_of_its_type(row: type[msgspec.Struct]) -> None:
    named = {column.partition("|")[0] for column in COLUMNS[row].split(", ")}
    assert named <= set(row.__struct_fields__)
