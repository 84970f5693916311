"""What a configuration file says, as JSON or TOML: read, asked for a setting, given one, and written in its own format.

Where the format has comments, they stay.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, MutableMapping
from typing import Any, Literal

from orchestrator.clients.connect.templates import Setting

Form = Literal["json", "toml", "text"]
Document = MutableMapping[str, Any]

ABSENT = object()
"""Stands for what is not in a document."""

_LINE_END = re.compile(r"(?<!\r)\n")
_INDENT = re.compile(r"^[{\[]\s*?\n([ \t]+)", re.MULTILINE)


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
    there = at(document, setting.keys)
    if setting.adds:
        return isinstance(there, list) and all(item in there for item in setting.value)
    return bool(plain(there) == setting.value)


def value_at(document: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """What stands there, without its format; None where nothing does."""
    there = at(document, keys)
    return None if there is ABSENT else plain(there)


def at(document: Any, keys: tuple[str, ...]) -> Any:
    """What stands there; ABSENT where nothing does."""
    for key in keys:
        if not isinstance(document, Mapping) or key not in document:
            return ABSENT
        document = document[key]
    return document


def plain(value: Any) -> Any:
    """A value of tomlkit as Python's own."""
    return value.unwrap() if hasattr(value, "unwrap") else value


def place_of(error: ValueError) -> str:
    """What is wrong, with its line; comments are named, since some clients take them in JSON."""
    if isinstance(error, json.JSONDecodeError):
        line = "".join(error.doc.split("\n")[error.lineno - 1 : error.lineno]).strip()
        comment = " (comments would be lost)" if line.startswith(("//", "/*")) or " //" in line else ""
        return f"line {error.lineno}, column {error.colno}: {error.msg}{comment}"
    return str(error)


# --- changing and writing ----------------------------------------------------------------


def put_setting(document: Document, setting: Setting) -> None:
    """Have the document say so; what is on the way there is a table, or is not there."""
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


def take_back(document: Document, former: Document, setting: Setting) -> bool:
    """Bring one setting back; False where a person changed it since."""
    there, was = at(document, setting.keys), at(former, setting.keys)
    if there is ABSENT or plain(there) == plain(was):
        return True
    *above, last = setting.keys
    parent = at(document, tuple(above))
    if setting.adds:
        if not isinstance(there, list):
            return False
        for item in setting.value:
            if item in there and (was is ABSENT or item not in was):
                there.remove(item)
        if there or was is not ABSENT:
            return True
    elif plain(there) != setting.value:
        return False
    if was is ABSENT:
        del parent[last]
        _drop_empty(document, former, tuple(above))
    else:
        parent[last] = was
    return True


def _drop_empty(document: Document, former: Document, keys: tuple[str, ...]) -> None:
    """Remove the tables that were made only to hold what is gone."""
    while keys and not at(document, keys) and at(former, keys) is ABSENT:
        *above, last = keys
        del at(document, tuple(above))[last]
        keys = tuple(above)


def written(document: Document, former: str | None, form: Form) -> str:
    """Its text, indented and with line ends as in the former one. Raises ValueError for what no text can hold."""
    text = _serialised(document, former, form)
    text.encode()
    ends = former is not None and 0 < former.count("\n") == former.count("\r\n")
    return _LINE_END.sub("\r\n", text) if ends else text


def _serialised(document: Document, former: str | None, form: Form) -> str:
    if form == "toml":
        import tomlkit

        return tomlkit.dumps(document)
    if form == "text":
        return str(document["text"])
    indent = _INDENT.search(former or "")
    end = "" if former and former.strip() and not former.endswith("\n") else "\n"
    return json.dumps(document, indent=indent[1] if indent else 2, ensure_ascii=False) + end
