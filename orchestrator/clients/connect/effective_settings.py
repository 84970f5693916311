"""What a client's files say now, read back: what it starts or runs, and what goes past the daemon all the same."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestrator.clients.connect import settings_file
from orchestrator.clients.connect.settings_document import Document, parse, value_at
from orchestrator.clients.connect.templates import SERVER, ClientFile, Instead, Target, Template
from orchestrator.core.errors import escaped

_COMMAND = re.compile(r"^const COMMAND = (\[.*\])$", re.MULTILINE)
"""The line of our plugins that names the hook."""


def command_of(template: Template, to: Target) -> tuple[str, ...]:
    """What a client's files say now that it starts, read back from them; empty where they name none."""
    files = template.files(to)
    if template.hooks is not None:
        said = [tuple(shlex.split(command)) for command in hook_commands(files)]
        return to.command if to.command in said else next(iter(said), ())
    for file in files:
        if file.servers:
            document = parse(settings_file.read(file), file.form)
            server = value_at(document, (*file.servers, SERVER))
            if isinstance(server, dict):
                command = server.get("command", ())
                words = [command] if isinstance(command, str) else command
                return tuple(map(str, (*words, *server.get("args", ()))))
    return ()


def hook_commands(files: tuple[ClientFile, ...]) -> tuple[str, ...]:
    """Each command of our hook that a client's files say now, as it stands in them."""
    documents = (parse(settings_file.read(file), file.form) for file in files)
    return tuple(dict.fromkeys(command for document in documents for command in _hooks_in(document)))


def _hooks_in(said: Any) -> Iterator[str]:
    """Our hook's commands anywhere in a document."""
    if isinstance(said, str):
        if (named := _COMMAND.search(said)) is not None:
            said = shlex.join(json.loads(named[1]))
        try:
            words = shlex.split(said)
        except ValueError:
            return
        if "hook" in words[1:] and any("orchestrator" in word for word in words[: words.index("hook")]):
            yield said
    elif isinstance(said, Mapping | list):
        for each in said.values() if isinstance(said, Mapping) else said:
            yield from _hooks_in(each)


def _past_hooks(template: Template, to: Target) -> Iterator[str]:
    """What keeps the hook from being run, or runs another beside it."""
    hooks = template.hooks
    if hooks is None:
        return
    files = template.files(to)
    documents = [(file.path, parse(settings_file.read(file), file.form)) for file in files]
    documents += [(path, _read_only(path)) for path in hooks.beside(to)]
    for path, document in documents:
        if hooks.off is not None and value_at(document, hooks.off[0]) is hooks.off[1]:
            named = ".".join(hooks.off[0])
            yield f"{escaped(path)} turns all hooks off: its own tools go past the daemon until {named} is taken out"
        if any(command != shlex.join(to.command) for command in _hooks_in(document)):
            yield f"{escaped(path)} runs `orchestrator hook` too: each call is judged twice, so take the other one out"


def _read_only(path: str) -> Document:
    """Another file that the client reads; empty where there is none, or the client can't read it either."""
    try:
        return parse(Path(path).read_text(encoding="utf-8"), "toml" if path.endswith(".toml") else "json")
    except (OSError, ValueError):
        return {}


def ways_past(template: Template, to: Target) -> Iterator[str]:
    """What else is configured here that goes past the daemon, or may."""
    yield from _past_hooks(template, to)
    if template.instead is not None and _names_it(instead := template.instead(to)):
        yield (
            f"{escaped(instead.path)} has a server named {SERVER} for this project too, and {template.title} takes "
            f"that one instead: run `{instead.removed_by}` here"
        )
    for name in template.beside:
        if (Path(to.workspace) / name).exists():
            yield f"{name} is read by {template.title} too, and what it says of tools can turn them on again"
    for file in template.files(to):
        document = parse(settings_file.read(file), file.form)
        servers = value_at(document, file.servers) if file.servers else None
        if others := sorted(set(servers) - {SERVER}) if isinstance(servers, dict) else ():
            named = escaped(", ".join(others))
            yield f"{escaped(file.path)} names other MCP servers, which go past the daemon: {named}"
        excluded = value_at(document, template.excludes) if template.excludes else None
        if isinstance(excluded, list) and SERVER in excluded:
            named = ".".join(template.excludes)
            yield f"{escaped(file.path)} has {SERVER} under {named}, so {template.title} does not start it: take it out"
        switches = value_at(document, template.switches) if template.switches else None
        if on := _on_again(switches if isinstance(switches, dict) else {}):
            yield f"{escaped(file.path)} turns tools of its own on again, behind '*': {escaped(', '.join(on))}"


def _names_it(place: Instead) -> bool:
    return value_at(_read_only(place.path), place.keys) is not None


def _on_again(switches: dict[str, object]) -> list[str]:
    """The tools that are turned on behind the '*' that turns all off."""
    names = [*switches]
    behind = names[names.index("*") :] if "*" in names else names
    return [name for name in behind if switches[name] is True and name != f"{SERVER}_*"]
