"""Requests for a person's yes: each is shown whole, and answered by who was shown it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeVar

import click
import msgspec

from orchestrator.api import administration as a
from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.framing import Refusal, Subscribe, refusal
from orchestrator.api.history import ROLLBACK
from orchestrator.api.operation import Operation
from orchestrator.api.operations import REVERT
from orchestrator.api.parameters import Params
from orchestrator.clients.cli.context import (
    DONE,
    REFUSED,
    WAITING,
    Command,
    Settings,
    echo,
    echo_json,
    exit_code,
    global_options,
    on_a_terminal,
    usage,
    worst,
)
from orchestrator.clients.cli.operation_commands import OperationCommand, command
from orchestrator.clients.connection import Connection
from orchestrator.clients.running_daemon import RemoteError
from orchestrator.core.errors import ApproverCodeNeeded, plural

Answer = TypeVar("Answer", r.ChangeAnswer, r.Done)
Undone = TypeVar("Undone", bound=r.ChangeAnswer)

MOST_LISTED = 200
"""On one page of the list: the most that the daemon gives."""


@click.command("approvals show", cls=Command)
@click.argument("approval", metavar="@N")
@click.pass_obj
def approvals_show(settings: Settings, approval: str) -> int:
    """One request with all that it would do: every file, whole. Who was shown it may approve it."""
    return settings.show(whole(settings, approval))


def whole(settings: Settings, approval: str) -> a.ApprovalInfo:
    """A request with all its pages joined."""
    page = settings.ask(a.APPROVALS_SHOW, a.ApprovalsShow(approval=approval))
    texts, unkept = [page.diff or ""], [*page.unkept]
    while page.cursor is not None:
        page = settings.ask(a.APPROVALS_SHOW, a.ApprovalsShow(approval=approval, cursor=page.cursor))
        texts.append(page.diff or "")
        unkept += page.unkept
    return msgspec.structs.replace(page, diff="".join(texts), unkept=tuple(unkept))


def confirmed(settings: Settings, approval: str) -> a.ApprovalInfo | None:
    """Show a request on the terminal and ask whether to approve it; None: no, or it waits no more."""
    info = whole(settings, approval)
    settings.show(info)
    if info.state != "waiting":
        click.echo(f"{info.approval} does not wait any more: {info.state}", err=True)
        return None
    what = f"{info.approval} ({plural(info.path_count, 'path')})"
    if not info.shown_whole:
        what += f", though {plural(len(info.unkept), 'file')} of it can't be shown"
    return info if click.confirm(f"Approve {what}?", err=True) else None


# --- answering by their numbers ------------------------------------------------------------


class Decision(r.Result, frozen=True, kw_only=True):
    """What came of one of several requests: the daemon's answer, or its refusal."""

    approval: str
    answer: r.ChangeAnswer | r.Done | None = None
    refusal: Refusal | None = None


class Decisions(r.Result, frozen=True, kw_only=True):
    """What `--json` prints where several were named."""

    decisions: tuple[Decision, ...]


def _named(settings: Settings, typed: dict[str, Any]) -> list[str]:
    """The requests that were meant, oldest first for --all."""
    named = list(typed.pop("named"))
    if typed.pop("all") == bool(named):
        usage("name requests (@N), or give --all")
    if not named:
        with settings.connect() as connection:
            named = _waiting(connection)
    if not named:
        click.get_current_context().exit(settings.show(a.Approvals()))
    typed["approval"] = named[0]
    return named


def _look_first(settings: Settings, typed: dict[str, Any]) -> None:
    """A person at a terminal is shown what each yes would be for, and asked."""
    named = _named(settings, typed)
    typed["wanted"] = dict.fromkeys(named, typed["unseen"])
    if settings.json or typed["unseen"] or not on_a_terminal() or not settings.is_person:
        return
    looked = [info for approval in named if (info := confirmed(settings, approval)) is not None]
    if not looked:
        click.get_current_context().exit(REFUSED)
    typed["wanted"] = {info.approval: not info.shown_whole for info in looked}
    typed["declined"] = len(looked) < len(named)


def _deny_which(settings: Settings, typed: dict[str, Any]) -> None:
    typed["wanted"] = _named(settings, typed)


_WHICH = (
    click.Argument(["named"], nargs=-1, metavar="[@N]..."),
    click.Option(["--all"], is_flag=True, help="Every request that waits."),
)


@command(a.APPROVE, hide=("approval",), options=_WHICH, prepare=_look_first)
def approvals_approve(settings: Settings, params: a.Approve, wanted: Mapping[str, bool], declined: bool = False) -> int:
    """Say yes: the daemon applies the change. In a terminal each is shown first."""
    each = [msgspec.structs.replace(params, approval=named, unseen=unseen) for named, unseen in wanted.items()]
    return worst([_decide(settings, a.APPROVE, each), *([REFUSED] if declined else [])])


@command(a.DENY, hide=("approval",), options=_WHICH, prepare=_deny_which)
def approvals_deny(settings: Settings, params: a.Deny, wanted: Sequence[str]) -> int:
    """Say no: the change is dropped."""
    return _decide(settings, a.DENY, [msgspec.structs.replace(params, approval=named) for named in wanted])


def _decide(settings: Settings, operation: Operation[..., Any, Answer], each: Sequence[a.Approve | a.Deny]) -> int:
    """Answer one request as any operation is called, several one after the other; the worst exit code."""
    if len(each) == 1:
        return settings.run(operation, each[0])
    decisions, codes = [], []
    with settings.connect() as connection:
        for params in each:
            approval = str(params.approval)
            try:
                answer = connection.call(operation, params)
            except RemoteError as error:
                if error.code == ApproverCodeNeeded.code:
                    raise  # else one mistyped code counts as many guesses
                decisions.append(Decision(approval=approval, refusal=refusal(error)))
                codes.append(REFUSED if settings.json else settings.refuse(refusal(error)))
            else:
                decisions.append(Decision(approval=approval, answer=answer))
                codes.append(exit_code(answer) if settings.json else settings.show(answer))
    if settings.json:
        echo_json(Decisions(decisions=tuple(decisions)))
    return worst(codes)


def _waiting(connection: Connection) -> list[str]:
    """All requests that wait, oldest first."""
    page = connection.call(a.APPROVALS_LIST, a.ApprovalsList(limit=MOST_LISTED))
    found = [info.approval for info in page.approvals]
    while page.cursor is not None:
        page = connection.call(a.APPROVALS_LIST, a.ApprovalsList(limit=MOST_LISTED, cursor=page.cursor))
        found += [info.approval for info in page.approvals]
    return found


# --- one after the other -------------------------------------------------------------------


@click.command("approvals answer", cls=Command)
@click.pass_obj
def approvals_answer(settings: Settings) -> int:
    """Answer what waits, and what arrives, one after the other; the code is asked for once, at the first answer."""
    if settings.json or not on_a_terminal() or not settings.is_person:
        usage("needs a person at a terminal; `orchestrator approvals` lists what waits")
    opened = False
    with suppress(click.Abort, KeyboardInterrupt), settings.connect() as connection, settings.connect() as feed:
        head = connection.call(a.STATUS, p.Params()).head
        arrivals = feed.follow(Subscribe(after=head, kinds=("approval_requested",)))
        skipped: set[str] = set()
        while True:
            approval = next((each for each in _waiting(connection) if each not in skipped), None)
            if approval is None:
                click.echo("Nothing else waits. New requests are shown as they come; Ctrl+C ends.", err=True)
                next(arrivals)
                continue
            answer = _asked(settings, approval)
            if answer == "quit":
                break
            if answer == "skip":
                skipped.add(approval)
            elif answer is not None:
                if not opened:
                    _open_session(settings, connection)
                    opened = True
                _answer(settings, connection, answer)
    return DONE


def _asked(settings: Settings, approval: str) -> a.Approve | a.Deny | Literal["skip", "quit"] | None:
    """Show a request whole, and ask what shall become of it; None: it waits no more."""
    info = whole(settings, approval)
    if info.state != "waiting":
        return None
    settings.show(info)
    if not info.shown_whole:
        click.echo(f"{plural(len(info.unkept), 'file')} of {approval} can't be shown", err=True)
    question = f"{approval} ({plural(info.path_count, 'path')}): (y)es, (n)o, (s)kip, (q)uit"
    match click.prompt(question, type=click.Choice(["y", "n", "s", "q"]), show_choices=False, err=True):
        case "y":
            return a.Approve(approval=approval, unseen=not info.shown_whole)
        case "n":
            return a.Deny(approval=approval, reason=click.prompt("Why", default="", show_default=False, err=True))
        case "s":
            return "skip"
        case _:
            return "quit"


def _answer(settings: Settings, connection: Connection, params: a.Approve | a.Deny) -> None:
    """Send an answer; where the approver session was idle too long, the code is asked for again."""
    while True:
        try:
            if isinstance(params, a.Approve):
                settings.show(connection.call(a.APPROVE, params))
            else:
                settings.show(connection.call(a.DENY, params))
        except RemoteError as error:
            settings.refuse(refusal(error))
            if error.code == ApproverCodeNeeded.code:
                _open_session(settings, connection)
                continue
        return


def _open_session(settings: Settings, connection: Connection) -> None:
    """Ask for the code until it is right; each wrong one takes longer to be answered."""
    while True:
        try:
            connection.call(a.APPROVER_OPEN, p.Approving(approver=settings.approver()))
        except RemoteError as error:
            if settings.approver_code is not None or error.code != ApproverCodeNeeded.code:
                raise
            settings.refuse(refusal(error))
        else:
            return


def _list(context: click.Context) -> int:
    if context.invoked_subcommand is not None:
        return DONE
    settings = context.ensure_object(Settings)
    waiting = settings.ask(a.APPROVALS_LIST, a.ApprovalsList(limit=MOST_LISTED))
    code = settings.show(waiting)
    if waiting.approvals and not settings.json:
        echo("`orchestrator approvals answer` shows each of them, and asks", err=True)
    return code


approvals = click.Group(
    "approvals",
    callback=click.pass_context(_list),
    invoke_without_command=True,
    params=global_options(),
    help="What waits for a yes; without a command, list it.",
)


# --- one's own ---------------------------------------------------------------------------------


def _at_once(operation: Operation[..., Any, Undone]) -> Callable[[Settings, Params], int]:
    """Of a change that waits for the very person who asks for it, that person is asked for the code."""

    def run(settings: Settings, params: Params) -> int:
        answer = settings.ask(operation, params)
        waits = answer.approval if answer.status == "waiting" else None
        if waits is None or settings.json or not settings.is_person or not on_a_terminal():
            return settings.show(answer)
        info = whole(settings, waits)
        settings.show(msgspec.structs.replace(answer, diff=info.diff, diff_truncated=False))
        if not info.shown_whole and not click.confirm("Some of it can't be shown. Go on?", err=True):
            return WAITING
        click.echo("The code says yes now; Ctrl+C leaves it waiting.", err=True)
        yes = a.Approve(approval=waits, unseen=not info.shown_whole, approver=settings.approver())
        return settings.show(msgspec.structs.replace(settings.ask(a.APPROVE, yes), diff=None))

    return run


revert = OperationCommand(REVERT, _at_once(REVERT))
rollback = OperationCommand(ROLLBACK, _at_once(ROLLBACK))
