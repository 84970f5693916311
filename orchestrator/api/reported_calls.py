"""What `orchestrator run` reports of an agent's calls of its own tools; on the socket only."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api.native_edits import NativeNote
from orchestrator.api.operation import READS, Operation

CallKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
CallState = Literal["asks", "withdraws", "begins", "ends"]

MOST_PATHS = 100


class ReportedEdit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One replacement; without `old` the whole file."""

    path: p.AnyPath
    old: p.Content | None = None
    new: p.Content


class ReportToolCall(p.Params, frozen=True):
    client: Annotated[p.Name, Meta(description="Which agent it is, e.g. 'claude'.", min_length=1)]
    tool: Annotated[p.Name, Meta(description="What the agent calls it.", min_length=1)]
    call: Annotated[p.Name, Meta(description="The agent's own id of the call.", min_length=1)]
    state: Annotated[CallState, Meta(description="asks: for a person's yes.")]
    kind: CallKind = "other"
    paths: Annotated[tuple[p.AnyPath, ...], Meta(description="The files that it names.", max_length=MOST_PATHS)] = ()
    edits: Annotated[tuple[ReportedEdit, ...], Meta(description="What it changes.", max_length=p.MOST_CHANGES)] = ()
    reason: p.Reason = ""


class ToolCallNote(NativeNote, frozen=True, kw_only=True):
    """What was recorded of it. `approval`: the request that waits for a person."""

    approval: str | None = None


REPORT_TOOL_CALL = Operation(
    "report_tool_call",
    ReportToolCall,
    ToolCallNote,
    "Report a call of an agent's own tool: a person is asked about it, and what it is found to have changed is its.",
    tool=False,
    unmetered=True,
    raises=READS,
)
