"""The journal's checkpoints, its verification, and what is taken out of it."""

from __future__ import annotations

import os
from pathlib import Path

import click

from orchestrator.api import checkpoints as s
from orchestrator.api import locations
from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.clients import git_notes
from orchestrator.clients.cli import offline
from orchestrator.clients.cli.context import Settings, shared, text_of, usage
from orchestrator.clients.cli.outfile import outside
from orchestrator.clients.daemon_launcher import StateDirectoryInUse
from orchestrator.core.errors import DaemonUnreachable, escaped


@click.command("verify")
@click.option("--checkpoint", metavar="FILE|-", help="Compare with a checkpoint that was kept elsewhere.")
@shared
@click.pass_obj
def journal_verify(settings: Settings, checkpoint: str | None) -> int:
    """Check the chain, the payloads, the blobs and the signatures; works with the daemon stopped too.

    With --state-dir it is that journal, whether the daemon runs on another one or not.
    """
    text = None if checkpoint is None else text_of(checkpoint)
    identity = locations.workspace_id(locations.find_workspace(settings.workspace))
    try:
        return settings.run("journal_verify", p.JournalVerify(checkpoint=text), r.VerifyAnswer)
    except StateDirectoryInUse:
        pass  # it is the daemon's; this one is nobody's, and is only read
    except DaemonUnreachable:
        if settings.state_dir is None and locations.read_location(identity) is None:
            raise
    return settings.show(offline.verify(locations.state_directory(identity, settings.state_dir), text))


@click.command("checkpoint")
@click.option("--out", metavar="FILE", help="Write it to a new file, outside of the workspace.")
@click.option("--git-note", is_flag=True, help="Attach it to the workspace's present commit, as a git note.")
@shared
@click.pass_obj
def journal_checkpoint(settings: Settings, out: str | None, git_note: bool) -> int:
    """Sign where the journal ends now; prints the checkpoint, for `journal verify --checkpoint`."""
    place = None if out is None else outside(settings, out)
    if place is not None and place.exists():
        usage(f"--out: {out} is there already")
    made = settings.call("journal_checkpoint", s.JournalCheckpoint(), s.SignedCheckpoint)
    lines = [f"Signed the journal up to {made.seq} with key {made.key}."]
    if place is not None:
        _write(place, made.text)
        lines.append(f"Written to {out}: keep a copy where nobody who can write this journal can write.")
    if git_note:
        commit = git_notes.attach(locations.find_workspace(settings.workspace), made.text)
        lines.append(f"Noted at commit {commit}: `git notes --ref={git_notes.REF} show {commit[:12]}`.")
    return settings.show(made, lines if out is not None or git_note else [made.text.rstrip()])


@click.command("redact")
@click.argument("event", metavar="@N", required=False)
@click.option("--blob", metavar="sha256:…|@N", help="Remove a content instead, or that of a version.")
@click.option("--path", metavar="P", help="With --blob @N: which file's content, as of that version.")
@click.option("--field", "fields", multiple=True, metavar="NAME", help="Only this field, e.g. reason.")
@click.option("--reason", default="", help="Why; it stands in the journal.")
@shared
@click.pass_obj
def journal_redact(
    settings: Settings, event: str | None, blob: str | None, path: str | None, fields: tuple[str, ...], reason: str
) -> int:
    """Take the texts of an event, or a content, out of the journal for good. It can't be undone."""
    if (event is None) == (blob is None):
        usage("name an event, or give --blob")
    if path is not None and blob is None:
        usage("--path goes with --blob")
    where = settings.path(path) if path is not None else None
    code = settings.approver()
    params = s.JournalRedact(event=event, blob=blob, path=where, fields=fields, reason=reason, approver=code)
    done = settings.call("journal_redact", params, s.Redacted)
    what = f"{', '.join(done.fields)} of {done.event}" if done.event else f"{done.digest}, {done.size} bytes"
    lines = [f"Redacted {what} ({done.redaction})."]
    return settings.show(done, [*lines, *(f"  {escaped(warning)}" for warning in done.warnings)])


def _write(place: Path, text: str) -> None:
    """A new file, synced."""
    try:
        with place.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        usage(f"--out: {place}: {error.strerror}")


COMMANDS = (journal_verify, journal_checkpoint, journal_redact)
"""Below `orchestrator journal`."""
