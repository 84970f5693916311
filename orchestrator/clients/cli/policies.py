"""Commands about policy files that differ from their operations, or have none."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import click

from orchestrator.api import locations
from orchestrator.api import results as r
from orchestrator.api.policies import POLICY_CHECK
from orchestrator.clients.cli.context import Command, Settings, text_of
from orchestrator.clients.cli.operation_commands import OperationCommand
from orchestrator.core.errors import CallerError, escaped


class PolicyExists(
    CallerError,
    code="policy_exists",
    hint="Change that file, or move it away; `orchestrator policy check FILE` reads any.",
):
    """There is a policy of the workspace's own already."""


def _policy_text(settings: Settings, typed: dict[str, Any]) -> None:
    name = typed.pop("file")
    typed |= {"text": text_of(name), "source": name}


policy_check = OperationCommand(
    POLICY_CHECK,
    about="Check a policy file, and warn of what it opens; changes nothing.",
    hide=("text", "source"),
    options=(click.Argument(["file"], metavar="FILE|-"),),
    prepare=_policy_text,
)


@click.command("policy init", cls=Command)
@click.pass_obj
def policy_init(settings: Settings) -> int:
    """Write a policy of your own that extends the default, with comments."""
    path = Path(settings.state_directory) / locations.POLICY_FILE
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = resources.files("policies").joinpath("own.toml.example").read_text(encoding="utf-8")
    try:
        path.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        raise PolicyExists(f"there is a policy at {escaped(str(path))}") from None
    path.write_text(text, encoding="utf-8")
    return settings.show(r.Done(message=f"written: {path}; edit it, then run `orchestrator policy reload`"))
