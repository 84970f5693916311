"""What hooks of agents' clients ask before their own tools act, and tell after; on the socket only."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import CHANGES, READS, Operation
from orchestrator.core import errors as e

Kind = Literal["read", "edit", "write", "patch", "command"]


class NativeReplacement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One replacement of a tool that edits by quoting."""

    old: p.Content
    new: p.Content
    everywhere: bool = False


class NativeCall(p.Params, frozen=True):
    client: Annotated[p.Name, Meta(description="Whose hook it is, e.g. 'claude'.", min_length=1)]
    tool: Annotated[p.Name, Meta(description="The client's own name of the tool.", min_length=1)]
    kind: Annotated[Kind, Meta(description="What the tool does.")]
    call: Annotated[p.Name, Meta(description="The client's own id of the call.", min_length=1)]
    path: Annotated[p.AnyPath, Meta(description="The file; of a command, the folder where it runs.")] = ""
    patch: Annotated[p.Content | None, Meta(description="Of a patch: its text, '*** Begin Patch' and so on.")] = None


class NativeBefore(NativeCall, frozen=True):
    content: Annotated[p.Content | None, Meta(description="The whole new text, where the tool says it.")] = None
    changes: Annotated[
        tuple[NativeReplacement, ...], Meta(description="Its replacements, in order.", max_length=p.MOST_CHANGES)
    ] = ()
    exact: Annotated[bool, Meta(description="The tool finds only what its replacements quote exactly.")] = False
    command: Annotated[p.Content, Meta(description="Of a command: what the shell gets.")] = ""
    outside: Annotated[p.AnyPath, Meta(description="Of a command that runs outside of the workspace: where.")] = ""


class NativeAfter(NativeCall, frozen=True):
    start: Annotated[p.Start | None, Meta(description="Of a read: its first line.")] = None
    end: Annotated[p.Count | None, Meta(description="Of a read: its last line; none: to the end.")] = None


class NativePermit(r.Result, frozen=True, kw_only=True):
    """The tool may act. A tool that may not gets a refusal, with what to do next."""

    message: str = ""
    warnings: tuple[str, ...] = ()  # for the agent to read


class NativeChange(r.Result, frozen=True, kw_only=True):
    path: str
    change: str  # what file_history and revert call it


class NativeNote(r.Result, frozen=True, kw_only=True):
    """What was recorded of a tool's call."""

    group: str | None = None  # revert(group) undoes what it changed; null: nothing
    changes: tuple[NativeChange, ...] = ()
    more_changes: int = 0


NATIVE_BEFORE = Operation(
    "native_before",
    NativeBefore,
    NativePermit,
    "Ask whether an agent's own tool may act: by policy, others' leases, and what changed since it read.",
    tool=False,
    quiet=True,
    raises=(*dict.fromkeys((*READS, *CHANGES)), e.BaseRequired, e.EditStale, e.SearchNotFound, e.NotPermitted),
)

NATIVE_AFTER = Operation(
    "native_after",
    NativeAfter,
    NativeNote,
    "Tell what an agent's own tool did: what it read and changed is recorded as the agent's.",
    tool=False,
    unmetered=True,
    raises=READS,
)
