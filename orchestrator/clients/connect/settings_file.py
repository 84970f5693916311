"""One configuration file of a client: read, merged into, written whole, and brought back.

What is not ours stays as it is; a file that can't be read, or that could not be kept whole, is left alone.
"""

from __future__ import annotations

import difflib
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from orchestrator.clients.connect.settings_document import (
    ABSENT,
    Document,
    at,
    editable,
    holds,
    parse,
    place_of,
    plain,
    put_setting,
    take_back,
    written,
)
from orchestrator.clients.connect.templates import ClientFile, Setting
from orchestrator.core.errors import OperatorError, escaped

MOST_BYTES = {"json": 4 * 1024 * 1024, "toml": 128 * 1024, "text": 4 * 1024 * 1024}
"""What keeps the form of TOML takes about a second for 128 KiB."""


class SettingsRefused(OperatorError, code="settings_refused"):
    """A client's configuration file that is left as it is; the hint has what to put there by hand."""

    def __init__(self, path: str, why: str, wanted: ClientFile | None = None) -> None:
        super().__init__(
            f"{escaped(path)} {why}; nothing was changed",
            hint=f"Mend it and try again{', or add by hand what is below' if wanted else ''}.",
            details={"path": path},
            shown=by_hand(wanted) if wanted else None,
        )


# --- reading -----------------------------------------------------------------------------


def read(file: ClientFile) -> str | None:
    """The text of the file; None where there is none. Raises SettingsRefused for one that is not ours to write."""
    path = Path(file.path)
    for each in (path, path.parent):
        if each.is_symlink():
            raise SettingsRefused(str(each), f"is a link to {escaped(str(each.readlink()))}", file)
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise SettingsRefused(file.path, "is no regular file", file)
        if not found.st_mode & stat.S_IWUSR or not os.access(path, os.W_OK):
            raise SettingsRefused(file.path, "is read-only", file)
        if found.st_size > MOST_BYTES[file.form]:
            most = f"{found.st_size} bytes, and at most {MOST_BYTES[file.form]} are merged into"
            raise SettingsRefused(file.path, f"has {most}", file)
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise SettingsRefused(file.path, f"is not UTF-8 text: {error}", file) from error
    except OSError as error:
        raise SettingsRefused(file.path, f"can't be read: {error.strerror}", file) from error


# --- merging -----------------------------------------------------------------------------


def merged(text: str | None, file: ClientFile) -> str | None:
    """The text with the settings in it; the same text where it says all of them. Raises SettingsRefused."""
    try:
        expected = parse(text, file.form)
    except ValueError as error:
        raise SettingsRefused(file.path, f"can't be read as {file.form.upper()}: {place_of(error)}", file) from error
    if all(holds(expected, setting) for setting in file.settings):
        return text
    for setting in file.settings:
        _check(expected, setting, file)
        put_setting(expected, setting)
    try:
        document = editable(text, file.form)
        for setting in file.settings:
            put_setting(document, setting)
        new = written(document, text, file.form)
        whole = parse(new, file.form) == expected
    except (ValueError, RecursionError):
        whole = False
    if not whole:
        raise SettingsRefused(file.path, "can't be merged into without changing what else it says", file)
    return new


def _check(document: Document, setting: Setting, file: ClientFile) -> None:
    for count in range(1, len(setting.keys)):
        there = at(document, setting.keys[:count])
        if there is not ABSENT and not isinstance(there, Mapping):
            raise SettingsRefused(file.path, f"has no table at {'.'.join(setting.keys[:count])}", file)
    there = at(document, setting.keys)
    if there is ABSENT:
        return
    if setting.adds and not isinstance(there, list):
        raise SettingsRefused(file.path, f"has no list at {setting.name}", file)
    if file.form == "text" and there != setting.value:
        raise SettingsRefused(file.path, "holds something else than what connect writes; move it away", file)
    if setting.decided and plain(there) != setting.value:
        raise SettingsRefused(file.path, f"says {plain(there)!r} at {setting.name}, which somebody decided", file)


# --- taking back -------------------------------------------------------------------------


def restored(now: str | None, before: str | None, file: ClientFile) -> tuple[str | None, tuple[str, ...]]:
    """The text without what was put into `before`, and the settings that were changed since, which stay.

    Raises SettingsRefused where it can't be read any more.
    """
    if now is None:
        return None, ()
    if now == merged(before, file):
        return before, ()
    try:
        document, former = editable(now, file.form), editable(before, file.form)
    except ValueError as error:
        raise SettingsRefused(file.path, f"can't be read as {file.form.upper()}: {place_of(error)}") from error
    changed = tuple(setting.name for setting in file.settings if not take_back(document, former, setting))
    if plain(document) == parse(now, file.form):
        return now, changed
    if before is None and not document:
        return None, changed
    try:
        return written(document, now, file.form), changed
    except (ValueError, RecursionError) as error:
        raise SettingsRefused(file.path, "can't be written without changing what else it says") from error


# --- showing and writing -----------------------------------------------------------------


def by_hand(file: ClientFile) -> str:
    """The settings alone, as a file that holds nothing else has them."""
    return merged(None, file) or ""


def difference(path: str, old: str | None, new: str | None) -> str:
    """A unified diff of the file; empty where nothing changes."""
    names = [escaped(path) if text is not None else "/dev/null" for text in (old, new)]
    lines = [(text or "").splitlines(keepends=True) for text in (old, new)]
    rows = difflib.unified_diff(lines[0], lines[1], names[0], names[1])
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


def write(file: ClientFile, old: str | None, new: str | None, *, folders: int = 0) -> None:
    """Put the new text in place, whole and synced; None removes the file.

    `folders`: as many of those that it is in, too, if they are empty then.
    Raises SettingsRefused where the file is no longer what was read, or can't be written.
    """
    path = Path(file.path)
    if read(file) != old:
        raise SettingsRefused(file.path, "was changed while you looked at it", file)
    try:
        if new is None:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # something else is in it
                for folder in path.parents[:folders]:
                    folder.rmdir()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        put(path, new, stat.S_IMODE(path.stat().st_mode) if old is not None else 0o600)
    except OSError as error:
        raise SettingsRefused(file.path, f"can't be written: {error.strerror}", file) from error


def put(path: Path, text: str, mode: int) -> None:
    """Replace a file in one step. Raises OSError."""
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:  # noqa: PTH123  # a descriptor has no Path
            file.write(text)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.replace(draft, path)  # noqa: PTH105
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
