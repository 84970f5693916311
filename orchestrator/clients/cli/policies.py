"""Commands about policy files that differ from their operations, or have none."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import click

from orchestrator.api import locations
from orchestrator.api import results as r
from orchestrator.api.operations import TOOLS
from orchestrator.api.policies import (
    POLICY_CHECK,
    POLICY_EXPLAIN,
    POLICY_SIMULATE,
    FailedCase,
    PolicyCheck,
    PolicyReport,
    PolicyTested,
)
from orchestrator.api.policy_files import DEFAULT, read_policies, shipped_policies
from orchestrator.clients.cli.context import Command, Settings, echo, text_of
from orchestrator.clients.cli.operation_commands import OperationCommand
from orchestrator.core.errors import CallerError, DaemonUnreachable, escaped
from orchestrator.core.policy.advice import warnings
from orchestrator.core.policy.cases import parse_cases
from orchestrator.core.policy.parse import (
    check_policy,
    founds,
    is_workspace_file,
    parse_layers,
    parse_policy,
)
from orchestrator.core.policy.reader import PolicyText
from orchestrator.core.policy.rules import WORKSPACE_FILE


class PolicyExists(
    CallerError,
    code="policy_exists",
    hint="Change that file, or move it away; `orchestrator policy check FILE` reads any.",
):
    """There is a policy of the workspace's own already."""


def _policy_text(settings: Settings, typed: dict[str, Any]) -> None:
    name = typed.pop("file")
    typed |= {"text": text_of(name), "source": name}


def _check(settings: Settings, params: PolicyCheck) -> int:
    """By the daemon, which knows the workspace's files; without one, what the file alone tells."""
    try:
        return settings.run(POLICY_CHECK, params)
    except DaemonUnreachable:
        policy, problems, line_of = check_policy(
            params.text,
            params.source,
            shipped := shipped_policies(),
            _beneath_state(settings),
        )
        default = parse_policy(shipped[DEFAULT], source=f"policies/{DEFAULT}.toml")
        advice = (
            warnings(policy, params.source, shipped=default, paths=None, line_of=line_of, tools=TOOLS)
            if policy is not None
            else ()
        )
        echo("note: no daemon runs, so the file is not compared with the workspace's files", err=True)
        report = PolicyReport(
            source=params.source,
            ok=policy is not None,
            problems=tuple(problems),
            advice=tuple(advice),
            rules=len(policy.rules) if policy is not None else 0,
        )
        return settings.show(report)


policy_check = OperationCommand(
    POLICY_CHECK,
    _check,
    about="Check a policy file, and warn of what it opens; changes nothing.",
    hide=("text", "source"),
    options=(click.Argument(["file"], metavar="FILE|-"),),
    prepare=_policy_text,
)


policy_explain = OperationCommand(
    POLICY_EXPLAIN,
    options=(click.Argument(["argv"], nargs=-1, metavar="[-- COMMAND]..."),),
)


def _new_policy_text(settings: Settings, typed: dict[str, Any]) -> None:
    name = typed.pop("policy")
    typed |= {"text": text_of(name), "source": name}


policy_simulate = OperationCommand(
    POLICY_SIMULATE,
    hide=("text", "source"),
    options=(click.Option(["--policy"], metavar="FILE|-", required=True, help="The other policy."),),
    prepare=_new_policy_text,
)


@click.command("policy test", cls=Command)
@click.argument("file", metavar="FILE|-")
@click.option("--policy", metavar="FILE", help="The policy; default: the one that FILE names, else what would hold.")
@click.pass_obj
def policy_test(settings: Settings, file: str, policy: str | None) -> int:
    """Try a table of cases on a policy: exit code 1 where a verdict is not the expected one. Needs no daemon."""
    cases = parse_cases(text_of(file), file)
    named = policy or (str(Path(file).parent / cases.policy) if cases.policy else "")
    whole = parse_layers(policy_texts(settings, named), shipped_policies())
    failed = tuple(
        FailedCase(
            line=tried.line,
            agent=tried.case.agent,
            action=tried.case.action,
            path=tried.case.path,
            command=tried.case.command,
            expect=tried.case.expect,
            expected_rule=tried.case.rule,
            verdict=tried.verdict,
            rule=tried.rule,
            source=whole.source_of(tried.rule),
        )
        for tried in cases.tried(whole)
        if not tried.ok
    )
    return settings.show(PolicyTested(source=whole.source, ok=not failed, cases=len(cases.cases), failed=failed))


def policy_texts(settings: Settings, named: str = "") -> tuple[PolicyText, ...]:
    """The one that is named, over the operator's others if it can't stand alone.

    The workspace's own file beside the operator's, where it is that; or all files here.
    """
    if named and not is_workspace_file(named):
        alone = PolicyText("state", named, text_of(named))
        return (alone,) if founds(alone) else (*_beneath_state(settings), alone)
    own = Path(named or f"{settings.root}/{WORKSPACE_FILE}")
    operators = read_policies(locations.policy_files(settings.state_directory))
    return (*operators, *((PolicyText("workspace", str(own), text_of(str(own))),) if own.exists() else ()))


def _beneath_state(settings: Settings) -> tuple[PolicyText, ...]:
    """The operator's files over which that in the state directory is laid."""
    operators = read_policies(locations.policy_files(settings.state_directory))
    return tuple(text for text in operators if text.layer in ("system", "user"))


SHIPPED = ("default", "strict", "ask_all", "read_only", "local_models", "run_tests")


@click.command("policy init", cls=Command)
@click.option("--from", "base", type=click.Choice(SHIPPED), default="default", help="The shipped policy to extend.")
@click.pass_obj
def policy_init(settings: Settings, base: str) -> int:
    """Write a policy of your own that extends a shipped one, with comments."""
    path = Path(settings.state_directory) / locations.POLICY_FILE
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = resources.files("policies").joinpath("own.toml.example").read_text(encoding="utf-8")
    try:
        path.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        raise PolicyExists(f"there is a policy at {escaped(str(path))}") from None
    path.write_text(text.replace('extends = "default"', f'extends = "{base}"'), encoding="utf-8")
    return settings.show(r.Done(message=f"written: {path}; what you put into it holds from the next call on"))
