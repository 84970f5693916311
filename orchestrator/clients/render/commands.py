"""Calls that answers name, for agents to send, as the commands that a person types."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator

import msgspec

from orchestrator.api.operations import BY_NAME, OPERATIONS

COMMANDS = {operation.name: operation.words for operation in OPERATIONS if operation.words} | {"read_lines": "open"}
"""Operation → command."""

_OPTIONS = {
    "globs": "--glob",
    "include_hidden": "--hidden",
    "max_results": "--limit",
    "context_lines": "--context",
    "expected_count": "--count",
    "ttl_s": "--ttl",
    "grace_days": "--grace",
    "fields": "--field",
}
"""Parameter → option, where that is not its name."""

_TEXT = r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\""""
_NAMED = re.compile(rf"\b({'|'.join(COMMANDS)})\b(?:\((?P<arguments>(?:{_TEXT}|[^'\")\n])*)\))?")
_TAKES = re.compile(rf"\b({'|'.join(COMMANDS)}) takes: [^.]*\.(?: Send them with the types of its schema\.)?")
_FOR_AGENTS = re.compile(r" \(supersedes='@\d+'\)|(?:, or|;) await_change(?:\('@(?:\d+|N)'\)(?: follows it)?)?")
"""What only an agent can send; a conflict's commands are below its message."""
_WORDS = {"true": True, "false": False}


def option(parameter: str) -> str:
    """The option for a parameter of an operation."""
    return _OPTIONS.get(parameter, "--" + parameter.replace("_", "-"))


def for_people(hint: str) -> str:
    """A hint with the commands that a person runs in place of the operations that an agent calls."""
    hint = _TAKES.sub(lambda named: f"`orchestrator {COMMANDS[named[1]]} --help` says what it takes.", hint)
    return _NAMED.sub(_command, without_calls_of_agents(hint))


def without_calls_of_agents(text: str) -> str:
    """A text without the calls that only an agent makes."""
    return _FOR_AGENTS.sub("", text)


def _command(named: re.Match[str]) -> str:
    """The command, with the arguments of the call where it has all of them."""
    name, arguments = named[1], named["arguments"]
    if arguments is None and "_" not in name:
        return named[0]  # a word like any other
    try:
        typed = " ".join(map(shlex.quote, _typed(name, arguments or "")))
    except (SyntaxError, ValueError):
        typed = ""
    return f"`{' '.join(filter(None, ('orchestrator', COMMANDS[name], typed)))}`"


def _typed(name: str, arguments: str) -> Iterator[str]:
    """A call's arguments as its command takes them: what is required, and the path, by itself; the rest as options.

    Raises SyntaxError, ValueError where they are not written out, or not all that are required.
    """
    call = ast.parse(f"call({arguments})", mode="eval").body
    given = {str(each.arg): _value(each.value) for each in call.keywords} if isinstance(call, ast.Call) else {}
    required = {each.encode_name for each in msgspec.structs.fields(BY_NAME[name].struct) if each.required}
    if not required <= given.keys():
        raise ValueError(arguments)
    alone = required | {"path"}
    yield from (str(value) for parameter, value in given.items() if parameter in alone)
    for parameter, value in given.items():
        if parameter in alone or value is False:
            continue
        for each in value if isinstance(value, list) else (value,):
            yield from (option(parameter),) if each is True else (option(parameter), str(each))


def _value(node: ast.expr) -> object:
    """Raises ValueError."""
    return _WORDS[node.id] if isinstance(node, ast.Name) and node.id in _WORDS else ast.literal_eval(node)
