"""The command line, for people and their scripts.

Exit codes: 0 done, 1 refused, 2 usage, 3 waiting or conflict, 4 daemon not reachable, 5 internal.

- `context.py`: the global options, the connection, the terminal, how an answer is printed. Begin here.
- `operation_commands.py`: a command made from an operation of the catalogue. Here every operation that is called by
  one gets it, unless a module has it by hand:
- `files.py` (looking and changing), `approvals.py`, `commands.py` (programs that are run), `conflicts.py`,
  `journal.py` (events, export, checkpoints, the past as a folder), `commit.py` (into git), `policies.py`, `connect.py`
  (clients' configurations; `agent_token.py`: their tokens), `run.py` (an agent: `agent_run.py`, `agent_screen.py`,
  `agent_gate.py`), `doctor.py`, `daemon.py` (up, stop, mcp, and what works while the daemon is stopped).
- `new_folder.py`: the folder that a command makes and fills; `pager.py`: how a long answer is shown.
"""

from __future__ import annotations

import io
import os
import sys

import click

from orchestrator.api.framing import Refusal, refusal
from orchestrator.api.operations import OPERATIONS
from orchestrator.clients.cli import (
    approvals,
    commands,
    commit,
    conflicts,
    connect,
    daemon,
    doctor,
    files,
    journal,
    policies,
    run,
)
from orchestrator.clients.cli.context import DONE, USAGE, Settings, global_options
from orchestrator.clients.cli.operation_commands import OperationCommand
from orchestrator.core.errors import DescriptorsExhausted, OrchestratorError, escaped
from orchestrator.core.system_errors import OUT_OF_DESCRIPTORS
from orchestrator.version import VERSION

INTERRUPTED = 130


GROUPS = {
    "agent": "Who may call, and with which token.",
    "approver": "The code that a person decides with.",
    "grants": "What people let agents do without asking again.",
    "conflicts": "Changes that could not be applied.",
    "command": "Programs that agents, and you, run in the workspace.",
    "worktree": "Copies of the workspace in which launched agents worked by themselves.",
    "lease": "Who works where: paths that somebody reserved for a while.",
    "cache": "What the daemon remembers of contents, and can compute again.",
    "stats": "What the workspace holds, in numbers.",
    "policy": "What agents may do.",
    "journal": "The record of everything, and whether it is intact.",
}


@click.group(
    params=global_options(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(VERSION, message="%(prog)s %(version)s")
def orchestrator() -> None:
    """Let several coding agents, and you, work on one folder: every change journalled, mergeable, undoable."""


def _assemble() -> None:
    """The commands by hand, and for every other operation that is called by one, the usual; each under its words."""
    groups = {name: click.Group(name, help=about) for name, about in GROUPS.items()}
    groups[str(approvals.approvals.name)] = approvals.approvals
    modules = (daemon, connect, doctor, files, approvals, commands, conflicts, journal, commit, policies, run)
    by_hand = (each for module in modules for each in vars(module).values())
    for command in (*groups.values(), *by_hand, *map(OperationCommand, OPERATIONS)):
        if isinstance(command, click.Command) and command.name:
            *above, name = command.name.split()
            group = groups[above[0]] if above and above[0] in groups else orchestrator
            if not name.startswith("-") and name not in group.commands:
                group.add_command(command, name)


_assemble()


def main(argv: list[str], *, token: str | None = None, approver: str | None = None) -> int:
    """Run one command, with the token and the approver code that the environment had; the exit code."""
    settings = Settings()
    settings.token, settings.approver_code = token, approver
    try:
        code = orchestrator.main(args=argv, prog_name="orchestrator", standalone_mode=False, obj=settings)
    except click.ClickException as error:
        if settings.json or "--json" in argv:
            settings.json = True
            message = " ".join(error.format_message().split())
            settings.refuse(Refusal(code="usage", message=message, hint="--help lists what it takes."))
            return USAGE
        shown = io.StringIO()
        error.show(shown)
        click.echo("\n".join(map(escaped, shown.getvalue().expandtabs(2).splitlines())), err=True)
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except OrchestratorError as error:
        return settings.refuse(refusal(error))
    except BrokenPipeError:
        # What reads our output has seen enough; a further write at exit would only complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:  # the outermost fence: a person gets a line, not a trace
        if os.environ.get("ORCHESTRATOR_DEBUG"):
            raise
        if isinstance(error, OSError) and error.errno in OUT_OF_DESCRIPTORS:
            return settings.refuse(refusal(DescriptorsExhausted("this command may open no more files")))
        hint = "Set ORCHESTRATOR_DEBUG=1 to see where."
        return settings.refuse(Refusal(code="internal", message=f"{type(error).__name__}: {error}", hint=hint))
    return code if isinstance(code, int) else DONE
