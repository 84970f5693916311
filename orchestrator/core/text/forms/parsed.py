"""A parsed patch, whatever its form was."""

from __future__ import annotations

from typing import Literal

import msgspec

from orchestrator.core.text.hunks import FilePatch

Form = Literal["unified", "begin_patch", "search_replace", "whole_file"]


class ParsedPatch(msgspec.Struct, frozen=True):
    """A patch, and the form in which it was written."""

    form: Form
    files: tuple[FilePatch, ...]
