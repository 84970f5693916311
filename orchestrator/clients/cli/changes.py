"""Changing: patch, edit and write; and reserving paths."""

from __future__ import annotations

from typing import Any

import click

from orchestrator.api import parameters as p
from orchestrator.api.leases import RESERVE_PATHS
from orchestrator.api.operations import APPLY_PATCH, EDIT_FILE, WRITE_FILE
from orchestrator.clients.cli.context import Settings, usage
from orchestrator.clients.cli.operation_commands import OperationCommand, parameters

patch = OperationCommand(
    APPLY_PATCH,
    about="Apply a patch in any usual form, of one file or several: all of it or none.",
    files=("patch",),
    options=(click.Option(["--path"], help="The file to patch, where the patch names none."),),
)
write = OperationCommand(
    WRITE_FILE,
    about="Write a whole file, or append to one, from FILE or stdin.",
    defaults={"content": "-"},
    files=("content",),
    options=(
        click.Option(
            ["--mode"],
            type=click.Choice(["truncate", "append", "create"]),
            default="truncate",
            show_default=True,
            help="truncate: replace all; create: only if the file is absent.",
        ),
    ),
)
reserve = OperationCommand(
    RESERVE_PATHS,
    about="Reserve paths (gitignore-style globs, from the workspace's root); the same again renews.",
    hide=("mode",),
    options=(click.Option(["--shared"], is_flag=True, help="Others may share them; nobody may have them alone."),),
    prepare=lambda settings, typed: typed.update(mode="shared" if typed.pop("shared") else "exclusive"),
)


def _one_change(settings: Settings, typed: dict[str, Any]) -> None:
    """The options of a change as `changes`."""
    change = {name: typed.pop(name) for name in p.Replacement.__struct_fields__}
    forms = [change["search"] is not None, change["start"] is not None, change["symbol"] is not None]
    if sum(forms) != 1 or change["content" if change["symbol"] is not None else "replace"] is None:
        usage("give --search and --replace; or --start, --end, --expect and --replace; or --symbol and --content")
    typed["changes"] = (p.Replacement(**change),)


edit = OperationCommand(
    EDIT_FILE,
    about="Replace a passage of a file, lines by number, or a symbol.",
    hide=("changes",),
    options=(
        *parameters(p.Replacement, hide={"fuzzy"}, defaults={}, files=("content",)),
        click.Option(["--fuzzy/--exact"], default=None, help="Whether --search may be misquoted; default: policy."),
    ),
    prepare=_one_change,
)
