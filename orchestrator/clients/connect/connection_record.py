"""What was written into a client's configuration, kept in the state directory so that exactly that can be undone.

It also holds what stood there before, so it is the owner's alone (0600).
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from orchestrator.clients.connect import settings_file
from orchestrator.clients.connect.settings_document import parse
from orchestrator.clients.connect.settings_file import put
from orchestrator.clients.connect.templates import Client, ClientFile
from orchestrator.core.errors import OperatorError, escaped


class RecordUnreadable(
    OperatorError, code="record_unreadable", hint="Move it away: what it was kept for has to be undone by hand then."
):
    """The record of a connected client is not what we wrote."""


class WrittenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration file with our settings, its text before and after, and how many folders were made for it."""

    file: ClientFile
    before: str | None
    after: str | None
    made_folders: int = 0


class ConnectionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One connected client. `token_file`: the one that `connect` made; empty for none, and for a person's own."""

    client: Client
    agent: str
    command: tuple[str, ...]  # that the client starts
    token_file: str
    files: tuple[WrittenFile, ...]
    native: bool = False  # hooks around its own tools


def folder(state_dir: str) -> Path:
    """Where records and tokens lie."""
    return Path(state_dir) / "clients"


def load(state_dir: str, client: str) -> ConnectionRecord | None:
    """The record of a client; None for one that is not connected. Raises RecordUnreadable."""
    path = folder(state_dir) / f"{client}.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=ConnectionRecord)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise RecordUnreadable(f"{escaped(str(path))} can't be read: {error}") from error


def save(state_dir: str, record: ConnectionRecord) -> None:
    """Keep it in place of the one before. Raises OSError."""
    make_folder(state_dir)
    put(folder(state_dir) / f"{record.client}.json", msgspec.json.encode(record).decode(), 0o600)


def remove(state_dir: str, client: str) -> None:
    """Forget a client."""
    (folder(state_dir) / f"{client}.json").unlink(missing_ok=True)


def put_back(state_dir: str, client: str, former: ConnectionRecord | None) -> None:
    """Keep what was known before, where the files could not be written."""
    if former is None:
        remove(state_dir, client)
    else:
        save(state_dir, former)


def make_folder(state_dir: str) -> None:
    """Raises OSError."""
    folder(state_dir).mkdir(mode=0o700, parents=True, exist_ok=True)


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one configuration file. `kept`: settings that a person changed since, which stay."""

    file: ClientFile
    now: str | None
    new: str | None
    before: str | None = None
    made_folders: int = 0
    kept: tuple[str, ...] = ()

    @property
    def diff(self) -> str:
        return settings_file.difference(self.file.path, self.now, self.new)


def connecting(files: tuple[ClientFile, ...], record: ConnectionRecord | None) -> tuple[FileChange, ...]:
    """What `connect` changes in these files; what it wrote earlier is replaced.

    Raises SettingsRefused, before anything is changed.
    """
    written = {each.file.path: each for each in record.files} if record else {}
    changes = []
    for file in files:
        now, former = settings_file.read(file), written.get(file.path)
        before = settings_file.restored(now, former.before, former.file)[0] if former else now
        new = settings_file.merged(before, file)
        if now is not None and new is not None and parse(now, file.form) == parse(new, file.form):
            new = now
        folder = Path(file.path).parent
        beside = [each.made_folders for path, each in written.items() if Path(path).parent == folder]
        made = max(beside, default=sum(not each.exists() for each in (folder, *folder.parents)))
        changes.append(FileChange(file=file, now=now, new=new, before=before, made_folders=made))
    return tuple(changes)


def disconnecting(record: ConnectionRecord, *, apart: tuple[ClientFile, ...] = ()) -> tuple[FileChange, ...]:
    """What `disconnect` changes, in files other than `apart`. Raises SettingsRefused, before anything is changed."""
    changes = []
    kept_paths = {file.path for file in apart}
    for each in record.files:
        if each.file.path in kept_paths:
            continue
        now = settings_file.read(each.file)
        new, kept = settings_file.restored(now, each.before, each.file)
        changes.append(FileChange(file=each.file, now=now, new=new, made_folders=each.made_folders, kept=kept))
    return tuple(changes)


def carry_out(changes: tuple[FileChange, ...]) -> None:
    """Write all of the files, or none. Raises SettingsRefused."""
    done: list[FileChange] = []
    try:
        for change in changes:
            if change.new != change.now:
                settings_file.write(change.file, change.now, change.new, folders=change.made_folders)
                done.append(change)
    except settings_file.SettingsRefused:
        for change in reversed(done):
            settings_file.write(change.file, change.new, change.now, folders=change.made_folders)
        raise
