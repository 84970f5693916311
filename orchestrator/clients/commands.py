"""What operations are called on the command line: hints are written for whoever calls a tool."""

from __future__ import annotations

import re

from orchestrator.api.operations import OPERATIONS

COMMANDS = {operation.name: operation.words for operation in OPERATIONS if operation.words}
"""Operation → command."""

_NAMED = re.compile(rf"\b({'|'.join(name for name in COMMANDS if '_' in name)})\b(?:\([^)\n]*\))?")


def for_people(hint: str) -> str:
    """A hint with the commands that a person runs in place of the operations that an agent calls."""
    return _NAMED.sub(lambda named: f"`orchestrator {COMMANDS[named[1]]}`", hint)
