"""What commands see of git's configuration: what git needs to work, without what proves who somebody is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

_CONTINUED = re.compile(rb"\\\r?\n")
_USER_OF_URL = re.compile(rb"(://)[^/\s]*@")
_SECRET = re.compile(
    rb"^([^\S\n]*(?:\[[^\n]*?\][^\S\n]*)?)[\w-]*(?:pass|token|secret|header|helper|cookie)[\w-]*[^\S\n]*(?:=[^\n]*)?$",
    re.IGNORECASE | re.MULTILINE,
)
"""A variable whose name says so: `http.<url>.extraHeader`, `credential.helper`, `sendemail.smtpPass`."""

_NAMES = ("config", "config.worktree")


def without_credentials(data: bytes) -> bytes:
    """A configuration without users and passwords of URLs, headers, tokens and helpers; else it says the same."""
    return _SECRET.sub(rb"\1", _USER_OF_URL.sub(rb"\1", _CONTINUED.sub(b"", data)))


def configs_with_credentials(git: str) -> Iterator[tuple[str, bytes]]:
    """Of a `.git` folder with all below it but its objects: the real paths, and what a command may see in their place.

    What can't be read is not there: no command can read it either.
    """
    for above, folders, names in os.walk(git):
        folders[:] = [name for name in folders if name not in ("objects", "refs", "logs", "hooks")]
        for name in names:
            if name in _NAMES:
                path = os.path.realpath(os.path.join(above, name))
                try:
                    with open(path, "rb") as file:
                        data = file.read()
                except OSError:
                    continue
                shown = without_credentials(data)
                if shown != _CONTINUED.sub(b"", data):
                    yield path, shown
