"""One entry of the catalogue, and the errors that many of them share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Literal, ParamSpec, TypeVar, cast

import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core import errors as e
from orchestrator.core.text.answer_space import UNBOUNDED

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
    e.FileTooLarge,
    e.PathReserved,
    e.StaleBase,
    e.VersionNotKept,
    e.FileBusy,
    e.RequestIdReused,
    e.Aborted,
    e.WritesStopped,
)


SHORT_BYTES = 8_000
"""Of an answer that a model reads besides its work: some 2,000 tokens."""

Weight = Literal["file", "lines", "search", "tree", "patch", "always"]
"""When a call is heavy. `file`: the file that it names is large; `lines`: as `file`, but a file that is not held in
memory is read by pieces; `search`: also where it names none; `tree`: the
workspace has many files; `patch`: as `file`, or its parameters are long; `always`."""

Given = ParamSpec("Given")
P = TypeVar("P", bound=p.Params)
R = TypeVar("R", bound=r.Result)


class Operation(msgspec.Struct, Generic[Given, P, R], frozen=True):
    """One entry of the catalogue: all that is declared of an operation.

    `Given` is the signature of its parameters, so that a method made of an entry has their types.
    """

    name: str
    params: Callable[Given, P]  # the Params struct itself
    result: type[R]
    summary: str
    raises: tuple[type[e.OrchestratorError], ...] = ()
    writes: bool = False  # takes a request_id and may change the workspace or the journal's queues
    destructive: bool = False  # may remove content (which the journal still holds)
    core: bool = False  # in the default toolset
    operator_only: bool = False  # socket and CLI only, never a tool
    tool: bool = True  # MCP offers it; False: agents call it on the socket, as its parts are tools already
    opens_session: bool = True  # a person's opens with it; False: it only looks something up, and shows no lines
    reviewers: bool = False  # of an operator's: agents of class review may call it, where policy lets them
    inline: bool = False  # short: answered before the next line of its connection is read
    unmetered: bool = False  # a budget that is spent does not refuse it
    quiet: bool = False  # no model reads its answer: notices wait for the next call, or come with its refusal
    waits: bool = False  # does nothing but wait for others, so it takes no turn
    weight: Weight = "file"
    command: str | None = None  # its words after `orchestrator`; None: an operator's by its name, others by none
    most_bytes: int = UNBOUNDED.bytes  # of JSON for a model; it names the call that shows what is beyond them

    @property
    def struct(self) -> type[P]:
        """`params` as the type that it is."""
        return cast("type[P]", self.params)

    @property
    def words(self) -> str:
        """How a person calls it on the command line; empty: no command is this operation alone."""
        if self.command is None and self.operator_only:
            return self.name.replace("_", " ")
        return self.command or ""

    def takes(self, name: str) -> bool:
        """Whether it has a parameter of this name."""
        return name in self.struct.__struct_fields__


class OperatorOperation(Operation[Given, P, R], Generic[Given, P, R], frozen=True):
    """One of the socket and the command line only: no tool offers it, and agents are refused."""

    operator_only: bool = True
    opens_session: bool = False


AnyOperation = Operation[..., Any, Any]
