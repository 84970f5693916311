"""One configuration file of a client: read, merged into, written whole, and brought back.

What is not ours stays as it is; a file that can't be read, or that could not be kept whole, is left alone.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import stat
import tempfile
import tomllib
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from orchestrator.clients.connect.templates import ClientFile, Setting
from orchestrator.core.errors import OperatorError, escaped

Form = Literal["json", "toml", "text"]
Document = MutableMapping[str, Any]

MOST_BYTES = {"json": 4 * 1024 * 1024, "toml": 128 * 1024, "text": 4 * 1024 * 1024}
"""What keeps the form of TOML takes about a second for 128 KiB."""

_ABSENT = object()
_LINE_END = re.compile(r"(?<!\r)\n")
_INDENT = re.compile(r"^[{\[]\s*?\n([ \t]+)", re.MULTILINE)


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


def parse(text: str | None, form: Form) -> Document:
    """The document that a text holds. Raises ValueError."""
    if form == "text":
        return {} if text is None else {"text": text}
    if not (text or "").strip():
        return {}
    try:
        found = tomllib.loads(text or "") if form == "toml" else json.loads(text or "", object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("it holds no JSON object: line 1")  # noqa: TRY004  # the text is wrong, not the call
    return found


def editable(text: str | None, form: Form) -> Document:
    """The same in a form that keeps comments where the format has them. Raises ValueError."""
    if form != "toml":
        return parse(text, form)
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text or "")
    except TOMLKitError as error:
        raise ValueError(str(error)) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands in it twice")
    return members


def holds(document: Mapping[str, Any], setting: Setting) -> bool:
    """Whether the document says so."""
    there = _at(document, setting.keys)
    if setting.adds:
        return isinstance(there, list) and all(item in there for item in setting.value)
    return bool(_plain(there) == setting.value)


def value_at(document: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """What stands there, without its format; None where nothing does."""
    there = _at(document, keys)
    return None if there is _ABSENT else _plain(there)


def _at(document: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        if not isinstance(document, Mapping) or key not in document:
            return _ABSENT
        document = document[key]
    return document


def _plain(value: Any) -> Any:
    """A value of tomlkit as Python's own."""
    return value.unwrap() if hasattr(value, "unwrap") else value


# --- merging -----------------------------------------------------------------------------


def merged(text: str | None, file: ClientFile) -> str | None:
    """The text with the settings in it; the same text where it says all of them. Raises SettingsRefused."""
    try:
        expected = parse(text, file.form)
    except ValueError as error:
        raise SettingsRefused(file.path, f"can't be read as {file.form.upper()}: {_place(error)}", file) from error
    if all(holds(expected, setting) for setting in file.settings):
        return text
    for setting in file.settings:
        _check(expected, setting, file)
        _put(expected, setting)
    try:
        document = editable(text, file.form)
        for setting in file.settings:
            _put(document, setting)
        new = _written(document, text, file.form)
        whole = parse(new, file.form) == expected and new.encode()
    except (ValueError, RecursionError):
        whole = False
    if not whole:
        raise SettingsRefused(file.path, "can't be merged into without changing what else it says", file)
    return new


def _check(document: Document, setting: Setting, file: ClientFile) -> None:
    for count in range(1, len(setting.keys)):
        there = _at(document, setting.keys[:count])
        if there is not _ABSENT and not isinstance(there, Mapping):
            raise SettingsRefused(file.path, f"has no table at {'.'.join(setting.keys[:count])}", file)
    there = _at(document, setting.keys)
    if there is _ABSENT:
        return
    if setting.adds and not isinstance(there, list):
        raise SettingsRefused(file.path, f"has no list at {setting.name}", file)
    if file.form == "text" and there != setting.value:
        raise SettingsRefused(file.path, "holds something else than what connect writes; move it away", file)
    if setting.decided and _plain(there) != setting.value:
        raise SettingsRefused(file.path, f"says {_plain(there)!r} at {setting.name}, which somebody decided", file)


def _put(document: Document, setting: Setting) -> None:
    *above, last = setting.keys
    for depth, key in enumerate(above):
        if key not in document:
            document[key] = _table(document, below=depth < len(above) - 1 or isinstance(setting.value, dict))
        document = document[key]
    if setting.adds:
        there = document.setdefault(last, [])
        for item in setting.value:
            if item not in there:
                there.append(item)
    elif isinstance(setting.value, dict) and _in_line(document):
        document[last] = _table(document, below=False)
        document[last].update(setting.value)
    else:
        document[last] = setting.value


def _table(document: Document, *, below: bool) -> Any:
    """A new table; in TOML without a header of its own where it will hold only tables, or is in a line."""
    if type(document) is dict:
        return {}
    import tomlkit

    return tomlkit.inline_table() if _in_line(document) else tomlkit.table(is_super_table=below)


def _in_line(document: Document) -> bool:
    """Whether it is a table of TOML that is written as a value, in one line."""
    return type(document).__name__ == "InlineTable"


def _written(document: Document, text: str | None, form: Form) -> str:
    written = _serialised(document, text, form)
    ends = text is not None and 0 < text.count("\n") == text.count("\r\n")
    return _LINE_END.sub("\r\n", written) if ends else written


def _serialised(document: Document, text: str | None, form: Form) -> str:
    if form == "toml":
        import tomlkit

        return tomlkit.dumps(document)
    if form == "text":
        return str(document["text"])
    indent = _INDENT.search(text or "")
    end = "" if text and text.strip() and not text.endswith("\n") else "\n"
    return json.dumps(document, indent=indent[1] if indent else 2, ensure_ascii=False) + end


def _place(error: ValueError) -> str:
    """What is wrong, with its line; comments are named, since some clients take them in JSON."""
    if isinstance(error, json.JSONDecodeError):
        line = "".join(error.doc.split("\n")[error.lineno - 1 : error.lineno]).strip()
        comment = " (comments would be lost)" if line.startswith(("//", "/*")) or " //" in line else ""
        return f"line {error.lineno}, column {error.colno}: {error.msg}{comment}"
    return str(error)


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
        raise SettingsRefused(file.path, f"can't be read as {file.form.upper()}: {_place(error)}") from error
    changed = tuple(setting.name for setting in file.settings if not _taken_back(document, former, setting))
    if _plain(document) == parse(now, file.form):
        return now, changed
    if before is None and not document:
        return None, changed
    return _written(document, now, file.form), changed


def _taken_back(document: Document, former: Document, setting: Setting) -> bool:
    """Bring one setting back; False where a person changed it since."""
    there, was = _at(document, setting.keys), _at(former, setting.keys)
    if there is _ABSENT or _plain(there) == _plain(was):
        return True
    *above, last = setting.keys
    parent = _at(document, tuple(above))
    if setting.adds:
        if not isinstance(there, list):
            return False
        for item in setting.value:
            if item in there and (was is _ABSENT or item not in was):
                there.remove(item)
        if there or was is not _ABSENT:
            return True
    elif _plain(there) != setting.value:
        return False
    if was is _ABSENT:
        del parent[last]
        _drop_empty(document, former, tuple(above))
    else:
        parent[last] = was
    return True


def _drop_empty(document: Document, former: Document, keys: tuple[str, ...]) -> None:
    """Remove the tables that were made only to hold what is gone."""
    while keys and not _at(document, keys) and _at(former, keys) is _ABSENT:
        *above, last = keys
        del _at(document, tuple(above))[last]
        keys = tuple(above)


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
