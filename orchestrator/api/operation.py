"""One entry of the catalogue, and the errors that many of them share."""

from __future__ import annotations

from typing import Literal

import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core import errors as e

Shape = Literal["text", "json"]
"""How MCP answers: one text block made for a model, or structured content with the same JSON."""

PATHS = (
    e.PathInvalid,
    e.PathTooLong,
    e.PathNotCanonical,
    e.PathAbsolute,
    e.SymlinkRefused,
    e.CrossDevice,
    e.NotARegularFile,
    e.NotADirectory,
)
READS = (*PATHS, e.FileNotFound, e.NotAFile, e.Denied, e.ApprovalRequired, e.FileTooLarge, e.ChangedWhileRead)
CHANGES = (
    *PATHS,
    e.Denied,
    e.PathReserved,
    e.StaleBase,
    e.VersionNotKept,
    e.FileBusy,
    e.RequestIdReused,
    e.Aborted,
    e.WritesStopped,
)


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the catalogue."""

    name: str
    params: type[p.Params]
    result: type[r.Result]
    summary: str
    raises: tuple[type[e.OrchestratorError], ...] = ()
    shape: Shape = "json"
    writes: bool = False  # takes a request_id and may change the workspace or the journal's queues
    destructive: bool = False  # may remove content (which the journal still holds)
    core: bool = False  # in the default toolset
    operator_only: bool = False  # socket and CLI only, never a tool
    planned: tuple[str, ...] = ()  # parameters, or values of them, that the contract names and this version lacks
