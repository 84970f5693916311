"""The command line, for people and their scripts.

Exit codes: 0 done, 1 refused, 2 usage, 3 waiting or conflict, 4 daemon not reachable, 5 internal.
"""

from __future__ import annotations

import io
import os
import sys

import click

from orchestrator.api.framing import Refusal
from orchestrator.clients.cli import (
    administration,
    audit,
    blame,
    changes,
    checkpoints,
    conflicts,
    daemon,
    files,
    leases,
    maintenance,
    records,
    stale_readers,
    time_travel,
)
from orchestrator.clients.cli.context import DONE, INTERNAL, USAGE, Settings, refusal_of, shared
from orchestrator.core.errors import DescriptorsExhausted, OrchestratorError, escaped
from orchestrator.core.system_errors import OUT_OF_DESCRIPTORS
from orchestrator.version import VERSION

INTERRUPTED = 130


class InOrder(click.Group):
    """Lists its commands in the order of a first day's use, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=InOrder, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, message="%(prog)s %(version)s")
@shared
def orchestrator() -> None:
    """Let several coding agents, and you, work on one folder: every change journalled, mergeable, undoable."""


for _command in (
    *(daemon.up, daemon.status, daemon.stop, daemon.mcp),
    *(administration.agent, administration.approver, records.session),
    *(files.files, files.open_file, files.search),
    *(changes.patch, changes.edit, changes.write, files.diff, audit.log, changes.revert, changes.rollback),
    *(blame.blame, blame.since),
    time_travel.replay,
    stale_readers.readers,
    *(administration.approvals, conflicts.conflicts, leases.lease, records.policy, records.journal, daemon.completion),
):
    orchestrator.add_command(_command)
for _command in (*maintenance.COMMANDS, *checkpoints.COMMANDS):
    records.journal.add_command(_command)


def main(argv: list[str]) -> int:
    """Run one command; the exit code."""
    settings = Settings()
    try:
        code = orchestrator.main(args=argv, prog_name="orchestrator", standalone_mode=False, obj=settings)
    except click.ClickException as error:
        if settings.json or "--json" in argv:
            settings.json = True
            settings.refuse(Refusal(code="usage", message=error.format_message(), hint="--help lists what it takes."))
            return USAGE
        message = io.StringIO()
        error.show(message)
        click.echo("\n".join(map(escaped, message.getvalue().splitlines())), err=True)
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except OrchestratorError as error:
        return settings.refuse(refusal_of(error))
    except BrokenPipeError:
        # What reads our output has seen enough; a further write at exit would only complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:  # the outermost fence: a person gets a line, not a trace
        if os.environ.get("ORCHESTRATOR_DEBUG"):
            raise
        if isinstance(error, OSError) and error.errno in OUT_OF_DESCRIPTORS:
            return settings.refuse(refusal_of(DescriptorsExhausted("this command may open no more files")))
        settings.refuse(
            Refusal(
                code="internal",
                message=f"{type(error).__name__}: {error}",
                hint="Set ORCHESTRATOR_DEBUG=1 to see where.",
            )
        )
        return INTERNAL
    return code if isinstance(code, int) else DONE
