"""A call of a hook, whichever client it is of, and how one is read from its JSON."""

from __future__ import annotations

import json

from orchestrator.api.locations import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take 2 ms of each hook
    from collections.abc import Collection, Mapping
    from typing import Any, Literal

    Kind = Literal["read", "edit", "write", "patch", "command"]


class Event:
    """What a client's tool is about to do, or did.

    `path` is as the tool got it; of a command, the folder where it runs. `alone`: no event comes after it, so it is
    recorded at once. `more` are further parameters of native_before, or native_after.
    """

    def __init__(  # noqa: PLR0913  # each by its name
        self,
        *,
        name: str,
        before: bool,
        session: str,
        cwd: str,
        call: str,
        tool: str,
        kind: Kind,
        path: str = "",
        alone: bool = False,
        more: Mapping[str, Any],
    ) -> None:
        self.name, self.before, self.session, self.cwd, self.call = name, before, session, cwd, call
        self.tool, self.kind, self.path, self.alone, self.more = tool, kind, path, alone, more


PASS = ""
"""The answer by which the client goes on as it would without the hook."""


class Unreadable(ValueError):
    """What came is not what this client sends."""


def parsed(data: bytes) -> dict[str, Any]:
    """The object that a client sent. Raises Unreadable."""
    try:
        given = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"what came on stdin is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise Unreadable("what came on stdin is no object")
    return given


def named(given: dict[str, Any], member: str, known: Collection[str]) -> str:
    """The name of the event, of those that this client's hook is for. Raises Unreadable."""
    name = text(given, member)
    if name not in known:
        raise Unreadable(f"this hook is for {', '.join(known)}, not for {name[:80]!r}")
    return name


def text(given: dict[str, Any], name: str, *, empty: bool = False) -> str:
    """A member that is a text. Raises Unreadable."""
    value = given.get(name)
    if not isinstance(value, str) or not (value or empty):
        raise Unreadable(f"{name} is missing, or no text")
    return value


def member(given: dict[str, Any], name: str) -> dict[str, Any]:
    """A member that is an object. Raises Unreadable."""
    value = given.get(name)
    if not isinstance(value, dict):
        raise Unreadable(f"{name} is no object")
    return value


def replacement(given: dict[str, Any], old: str, new: str, everywhere: str = "") -> dict[str, Any]:
    """One replacement of a tool that edits by quoting. Raises Unreadable."""
    return {
        "old": text(given, old, empty=True),
        "new": text(given, new, empty=True),
        "everywhere": given.get(everywhere) is True,
    }


def lines(start: Any, count: Any) -> dict[str, Any]:
    """The lines that a read showed, from its first, where it says which."""
    if type(start) is not int or type(count) is not int or start < 1 or count < 1:
        return {}
    return {"start": start, "end": start + count - 1}


def call_of(given: dict[str, Any], *names: str) -> str:
    """The id of a call whose client gives it none: before and after it these members are the same."""
    told = json.dumps([given.get(name) for name in names], sort_keys=True)
    return sha256(told.encode("utf-8", "surrogatepass"))[:32]
