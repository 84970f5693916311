"""The forms of secrets, read once from `secret_rules.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

Level = Literal["tokens", "all"]
"""tokens: what issuers give out, keys, and passwords in URLs; all: settings that are named like secrets besides."""


class SecretRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One form; a text without any of its `keywords` (in lower case), and of what is `near`, holds none."""

    kind: str
    form: str
    keywords: tuple[str, ...] = ()
    near: str = ""
    apart: bool = False  # a keyword may be in another word than the secret
    level: Level = "tokens"

    @property
    def expression(self) -> re.Pattern[str]:
        """The form, compiled; its group is the secret, else all of it is."""
        return re.compile(self.form)


@cache
def secret_rules(level: Level = "tokens") -> tuple[SecretRule, ...]:
    """The rules of a level, in the order of the file: the first of two equal finds names the kind."""
    text = resources.files(__package__).joinpath("secret_rules.toml").read_text(encoding="utf-8")
    found = msgspec.convert(tomllib.loads(text)["rule"], tuple[SecretRule, ...])
    return tuple(rule for rule in found if level == "all" or rule.level == "tokens")
