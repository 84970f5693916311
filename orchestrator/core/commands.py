"""Commands that agents run through us: one as it is asked for, and the patterns by which a policy names them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, get_args

import msgspec

from orchestrator.core.ids import WorkspacePath

Mode = Literal["in_place", "scratch"]
"""Where a command runs: in the workspace itself, or in a copy of it."""

CommandStatus = Literal["done", "timed_out", "stopped", "failed", "lost"]
"""How a command ended. failed: it could not be started. lost: the daemon ended while it ran."""


class CommandLine(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What is to be run: a yes is for exactly this."""

    argv: tuple[str, ...]
    cwd: WorkspacePath
    mode: Mode
    environment: tuple[str, ...] = ()  # what the caller sets, as NAME=value, by name


def in_modes(command: CommandLine, mode: Mode | None) -> tuple[CommandLine, ...]:
    """A command in the mode that its caller names; where it names none, in each of them, the command's own first.

    It is run in the first of those of which policy allows most.
    """
    modes = (mode,) if mode is not None else sorted(get_args(Mode), key=lambda each: each != command.mode)
    return tuple(msgspec.structs.replace(command, mode=each) for each in modes)


_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "ash", "csh", "tcsh", "pwsh", "cmd"))
_CODE_FLAGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "python": ("c", ()),
    "pypy": ("c", ()),
    "perl": ("eE", ()),
    "ruby": ("e", ()),
    "node": ("ep", ("--eval", "--print")),
    "bun": ("ep", ("--eval", "--print")),
    "deno": ("", ("eval",)),
    "php": ("rBRE", ("--run",)),
    "lua": ("e", ()),
    "awk": ("", ()),
}
"""By the interpreter's name: the letters of its short options that take code, and its long ones."""

_VERSION = re.compile(r"[0-9.]+\Z")


def code_words(argv: Sequence[str]) -> tuple[int, ...]:
    """The places of an interpreter and of its option that takes code (`sh -c`, `python3 -c`), wherever they stand.

    Also behind another program (`env sh -c …`). Only a pattern that has these words themselves allows such a command.
    """
    for place, word in enumerate(argv):
        name = _VERSION.sub("", word.rpartition("/")[2].removesuffix(".exe"))
        letters, long = ("c", ("--command",)) if name in _SHELLS else _CODE_FLAGS.get(name, ("", ()))
        for later, option in enumerate(argv[place + 1 :], place + 1):
            if option == "--":
                break
            cluster = option[1:] if re.match(r"-[A-Za-z]", option) else ""
            if option.partition("=")[0] in long or any(letter in cluster for letter in letters):
                return place, later
    return ()


_SYNTAX = re.compile(r"[|&;<>()$`\\*?\[\]{}~\n\r\0]|^\s*!|(?:^|\s)#|^\s*\S*=")
"""What a shell may take for more than a word; also where quotes would keep it from that."""


def shell_argv(text: str) -> tuple[str, ...]:
    """What a shell is told to run, as a command: of plain words these, of all else the shell with its text."""
    if not _SYNTAX.search(text):
        try:
            words = shlex.split(text)
        except ValueError:  # a quote is not closed
            words = []
        if words:
            return tuple(words)
    return ("sh", "-c", text)


class CommandPattern:
    """A pattern, word by word: `*` is any text within a word, and a last `**` any further words, or none."""

    __slots__ = ("_open", "_plain", "_words")

    def __init__(self, text: str) -> None:
        words = shlex.split(text)
        self._open = words[-1] == "**"
        closed = words[:-1] if self._open else words
        self._plain = tuple("*" not in word for word in closed)
        self._words = tuple(re.compile(".*".join(map(re.escape, word.split("*"))), re.DOTALL) for word in closed)

    def matches(self, argv: Sequence[str]) -> bool:
        """Whether it names this command."""
        if len(argv) < len(self._words) or (len(argv) > len(self._words) and not self._open):
            return False
        return all(word.fullmatch(given) for word, given in zip(self._words, argv, strict=False))

    def allows(self, argv: Sequence[str]) -> bool:
        """The same; code for an interpreter only where the pattern itself has the words that say so."""
        return self.matches(argv) and all(place < len(self._plain) and self._plain[place] for place in code_words(argv))


@lru_cache(maxsize=1024)
def command_pattern(text: str) -> CommandPattern:
    """The pattern of a text that `command_problem` finds nothing wrong with."""
    return CommandPattern(text)


def names_command(patterns: Sequence[str], argv: Sequence[str], *, allowing: bool) -> bool:
    """Whether one of a rule's patterns names a command; one that asks or denies, also by the program's bare name."""
    found = map(command_pattern, patterns)
    if allowing:
        return any(pattern.allows(argv) for pattern in found)
    bare = (argv[0].rpartition("/")[2], *argv[1:])
    return any(pattern.matches(argv) or pattern.matches(bare) for pattern in found)


def sample_of(pattern: str) -> tuple[str, ...]:
    """A command that a pattern names."""
    return tuple(word.replace("*", "x") for word in shlex.split(pattern) if word != "**")


def command_problem(text: str) -> str | None:
    """What is wrong with a pattern."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        return f"is no command: {str(error).lower()}"
    if not words or "\0" in text:
        return "is no command: it has no words" if not words else "is no command: it holds NUL"
    if words == ["**"]:
        return "names every command: leave `commands` out for that"
    if any("**" in word for word in words[:-1]) or ("**" in words[-1] and words[-1] != "**"):
        return "'**' is the last word, for any further ones; '*' is any text within a word"
    return None
