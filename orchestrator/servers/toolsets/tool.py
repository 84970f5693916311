"""A tool of another server: its parameters, the operations that it calls, and its answer."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Annotated, Any, TypeVar

import mcp_types as types
import msgspec
from msgspec import Meta
from msgspec.structs import fields, replace

from orchestrator.api.framing import Request
from orchestrator.api.operation import AnyOperation, Operation
from orchestrator.api.parameters import OPERATOR_ONLY
from orchestrator.api.results import ChangeAnswer, Result
from orchestrator.core.errors import OrchestratorError, PathAbsolute, UnknownOperation, escaped
from orchestrator.core.events.files import ContentSearched
from orchestrator.core.text.answer_space import AnswerSpace
from orchestrator.engine.caller import HeldNote
from orchestrator.servers.callable_hints import callable_hint

R = TypeVar("R", bound=Result)
C = TypeVar("C", bound=ChangeAnswer)

OwnRequestId = Annotated[
    Annotated[str, Meta(min_length=1, max_length=200)] | None,
    Meta(description="As of the catalogue's changes.", extra_json_schema={OPERATOR_ONLY: True}),
]
"""Our transport gives one to each change, so that it is made once; the other server's tools have none."""

_ENCODER = msgspec.json.Encoder()
_WORD = re.compile(r"[a-z]+ ")

Respond = Callable[[Request, AnswerSpace, list[HeldNote]], Awaitable[Any]]
"""Carries out one call of the catalogue. Raises OrchestratorError."""


class ToolAnswer(msgspec.Struct, frozen=True, eq=False):
    """What the client gets: a text, or other blocks; `structured` as the other server has it; `notes` of our own."""

    text: str | None = None
    structured: dict[str, Any] | None = None
    blocks: tuple[types.ContentBlock, ...] = ()
    notes: tuple[str, ...] = ()
    shown: str | None = None  # lines of the file below a head line of their own
    failed: bool = False


class NotDone(Exception):
    """A change that is not in the workspace: it waits, met a conflict or was refused by a person."""

    def __init__(self, answer: ChangeAnswer) -> None:
        super().__init__(answer.message)
        self.answer = answer

    @property
    def text(self) -> str:
        """What the model is told."""
        message = f"{self.answer.message.rstrip('.')}."
        if self.answer.status == "waiting":
            return f"Not done yet. {message} It is applied as soon as a person allows it: do not send it again."
        return f"Not done. {message}"


class Calls:
    """The calls of operations that one call of a tool makes."""

    def __init__(  # what is known of one call
        self,
        root: str,
        session: str,
        room: AnswerSpace,
        respond: Respond,
        call_id: str | None,
        settings: Mapping[str, str],
        names: frozenset[str],
    ) -> None:
        self.root, self.session, self.room = root, session, room
        self.held = list[HeldNote]()
        """What the answers of these calls showed; it is noted if the tool's own answer goes out."""
        self._respond, self._call_id, self.settings, self.names = respond, call_id, settings, names

    async def make(self, operation: Operation[..., Any, R], *, room: AnswerSpace | None = None, **params: Any) -> R:
        """Call an operation. Raises OrchestratorError; a refusal is in the journal by then."""
        given = {name.removesuffix("_"): value for name, value in params.items() if value is not None}
        request = Request(method=operation.name, params=msgspec.Raw(_ENCODER.encode(given)), call_id=self._call_id)
        try:
            answer: R = await self._respond(request, self.room if room is None else room, self.held)
        except OrchestratorError as error:
            error.hint = callable_hint(error.hint, self.names)
            raise
        return answer

    async def change(self, operation: Operation[..., Any, C], **params: Any) -> C:
        """Call an operation that changes something. Raises NotDone unless the change is made, or previewed."""
        before = len(self.held)
        answer = await self.make(operation, **params)
        if answer.status == "applied":
            del self.held[before:]  # no tool shows the diff of this answer
        if answer.success:
            return answer
        raise NotDone(answer)

    def shortened(self, paths: Collection[str]) -> None:
        """Of these files the tool does not show every line of a search whole: none of it counts as seen."""
        for at, note in enumerate(self.held):
            if isinstance(note.event, ContentSearched):
                cut = tuple(replace(seen, cut=seen.cut or seen.path in paths) for seen in note.event.seen)
                self.held[at] = note._replace(event=replace(note.event, seen=cut))

    def absolute(self, raw: str) -> str:
        """A path as clients of other servers write it, made absolute; `~` is the home folder.

        Raises PathAbsolute for one that leads out of the workspace by its words; the gate judges the rest.
        """
        path = os.path.normpath(os.path.join(self.root, os.path.expanduser(raw)))  # noqa: PTH111, PTH118  # words only
        if path != self.root and not path.startswith(self.root.rstrip("/") + "/"):
            raise PathAbsolute(path, f"it is outside of {self.root}")
        return path

    def shown(self, path: str) -> str:
        """A path of an answer as other servers write it."""
        return self.root if path in ("", ".") else f"{self.root.rstrip('/')}/{path}"

    def below(self, directory: str, path: str) -> str:
        """A path of a listing, relative to the directory that was listed, which is absolute."""
        return path if directory == self.root else path[len(directory) - len(self.root.rstrip("/")) :]


Run = Callable[[Calls, Any], Awaitable[ToolAnswer]]


class Tool(Operation[..., Any, Any], frozen=True, kw_only=True):
    """An entry of a toolset. `uses`: without one of these operations the tool is not there either."""

    run: Run
    uses: tuple[AnyOperation, ...]
    title: str | None = None
    idempotent: bool = False
    output_schema: dict[str, Any] | None = None


class ToolsetEntry(msgspec.Struct, frozen=True, eq=False):
    """The tools of a set, in their order, and how its server words an error."""

    tools: tuple[Tool, ...]
    refused: Callable[[OrchestratorError, str], str]
    aliases: Callable[[str, dict[str, Any]], tuple[str, dict[str, Any]]] = lambda name, given: (name, given)

    @property
    def names(self) -> frozenset[str]:
        """Of its tools, and of the parameters that models are told of."""
        parameters = {field.encode_name for tool in self.tools for field in fields(tool.struct)}
        return frozenset({*(tool.name for tool in self.tools), *parameters} - {"request_id"})

    def named(self, name: str) -> Tool:
        """Raises UnknownOperation."""
        for tool in self.tools:
            if tool.name == name:
                return tool
        raise UnknownOperation(f"there is no tool {escaped(name[:200])!r} here")

    def off(self, switched_off: frozenset[str]) -> frozenset[str]:
        """The tools that are not there where these names are switched off."""
        return frozenset(
            tool.name for tool in self.tools if not switched_off.isdisjoint((tool.name, *(op.name for op in tool.uses)))
        )


def sentence(error: OrchestratorError) -> str:
    """A refusal in words, with what to do next."""
    message = error.message
    if _WORD.match(message) and not message.startswith(str(error.details.get("path") or "\0")):  # no name begins it
        message = message[:1].upper() + message[1:]
    return f"{message.rstrip('.')}. {error.hint}".rstrip() if error.hint else message
