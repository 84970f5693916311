"""Keeps the index of vectors current: from events, only contents that it lacks, in the background.

A content is embedded once, whatever names it has; it goes when no file that may be embedded has it any more. What is
embedded is asked of policy as of an agent: of class `local` for a model in a folder, of class `cloud` for a service.
Secrets are redacted before, so neither a service nor the index gets them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import anyio
import anyio.lowlevel

from orchestrator.core.annotations import paths_of
from orchestrator.core.errors import EmbeddingFailed, SemanticSearchOff, TextTooCostly, plural
from orchestrator.core.events.base import ExternalChange, Recorded
from orchestrator.core.events.files import ChangeApplied, FilesFound
from orchestrator.core.ids import AgentName, Digest, SessionId, WorkspacePath
from orchestrator.core.policy.rules import SemanticRules
from orchestrator.core.projections.registry import Known
from orchestrator.core.text.chunks import chunks
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.redact import SecretRedactor
from orchestrator.core.text.symbols import Outline
from orchestrator.engine.access import Showing
from orchestrator.engine.caller import Caller
from orchestrator.engine.services import Services
from orchestrator.logs import logger
from orchestrator.ports.semantic import ContentTexts, SemanticIndex

MOST_FILE_BYTES = 1024 * 1024
"""A larger file is left out: it is data more often than text that somebody asks about."""

MOST_CHARACTERS = 1500
"""Of one passage that are embedded: about as many tokens as most models take."""

MOST_OF_FILE = 256
"""Passages of one file that are embedded, from its beginning."""

BATCH_CHUNKS = 64
"""Passages that are embedded together, with those of one more file; a question waits for no more of them."""

SLICE = 200
"""Files that policy judges before other callers have their turn."""

RETRY_S = 30.0
"""After a failure, unless files change before that."""

SETTLE_S = 2.0
"""How long a search waits for files that were changed just now."""

SHOWN: tuple[Showing, ...] = ("search", "read")


class SemanticIndexer:
    """Follows the journal; `run` does the work."""

    def __init__(self, services: Services, index: SemanticIndex) -> None:
        self._s, self._index, self._log = services, index, logger("semantic")
        self._settings, self._policy = SemanticRules(), services.permissions.policy
        self._dirty: set[WorkspacePath] = set()
        self._all = True  # every file is to be looked at
        self._files: dict[WorkspacePath, Digest] = {}
        self._held: set[Digest] = set()
        self._left_out: set[Digest] = set()  # not kept, no text, or no room
        self._model, self._chunks, self._waiting = "", 0, 0
        self.behind = True
        """Whether files may wait to be embedded."""
        self.trouble: SemanticSearchOff | EmbeddingFailed | None = None
        self._moved, self._rested = anyio.Event(), anyio.Event()
        services.journal.subscribe(self._follow)

    def _follow(self, recorded: Recorded) -> None:
        event = recorded.event
        moved = isinstance(event, ChangeApplied | FilesFound | ExternalChange) and self._wanted.on
        if moved:
            self._dirty.update(paths_of(event))
        if moved or not self._judged:
            self._wake()

    def _wake(self) -> None:
        moved, self._moved, self._rested, self.behind = self._moved, anyio.Event(), anyio.Event(), True
        moved.set()

    @property
    def _judged(self) -> bool:
        """Whether the policy is the one by which files were chosen; its event comes before it is in force."""
        return self._s.permissions.policy is self._policy

    @property
    def _wanted(self) -> SemanticRules:
        return self._s.permissions.policy.semantic

    @property
    def health(self) -> str:
        """What `status` says."""
        if not self._wanted.on:
            return "off"
        if isinstance(self.trouble, SemanticSearchOff):
            return f"off: {self.trouble.message}"
        done = f"{plural(len(self._held), 'content')} in {plural(self._chunks, 'passage')}"
        done += f", {len(self._left_out)} left out" if self._left_out else ""
        if self.trouble is not None:
            return f"failing: {self.trouble.message}; {done}"
        if self.behind or not self._index.is_open:
            return f"building: {done}, {self._waiting} to go"
        return f"ready: {done}, {self._model}"

    async def settled(self) -> SemanticIndex:
        """The index, when it is current or SETTLE_S are over. Raises SemanticSearchOff, EmbeddingFailed."""
        if not self._wanted.on:
            raise SemanticSearchOff("no model is set up for a search by meaning")
        if self.trouble is not None or not self._judged:
            self.trouble = None
            self._wake()
        with anyio.move_on_after(SETTLE_S):
            while self.behind and self.trouble is None:
                await self._rested.wait()
        if self.trouble is not None and (isinstance(self.trouble, SemanticSearchOff) or not self._index.is_open):
            raise type(self.trouble)(self.trouble.message)
        if not self._index.is_open:
            raise EmbeddingFailed("the model is still being loaded")
        return self._index

    def holding(self, paths: Iterable[WorkspacePath]) -> dict[Digest, WorkspacePath]:
        """The contents that the index has of these files, each with one of them."""
        found = {digest: path for path in paths if (digest := self._files.get(path)) is not None}
        return {digest: path for digest, path in found.items() if digest in self._held}

    @property
    def held(self) -> int:
        """How many contents the index has."""
        return len(self._held)

    # --- the work -------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled; the index is closed then."""
        try:
            while True:
                moved, pause, self.behind = self._moved, float("inf"), True
                try:
                    await self._sync()
                    self.trouble = None
                except (SemanticSearchOff, EmbeddingFailed) as error:
                    self._log.warning("the semantic index is not current", error=error.message)
                    self.trouble, pause = error, RETRY_S
                if self.trouble is None and (moved.is_set() or not self._judged):
                    continue
                self.behind = self.trouble is not None
                self._rested.set()
                with anyio.move_on_after(pause):
                    await moved.wait()
                    while self.trouble is not None and self._judged:
                        await self._moved.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await self._index.aclose()

    async def _sync(self) -> None:
        """Raises SemanticSearchOff, EmbeddingFailed; what was not done is done next time."""
        settings = self._wanted
        if not self._judged:
            self._policy, self._all = self._s.permissions.policy, True
        if settings != self._settings or (settings.on and not self._index.is_open):
            await self._index.aclose()
            self._held, self._left_out, self._all, self._settings = set(), set(), True, settings
        if not settings.on:
            self._files, self._all = {}, False
            self._dirty.clear()
            return
        if not self._index.is_open:
            opened = await self._index.open(settings)
            self._model, self._held, self._chunks = opened.model, set(opened.contents), opened.chunks
        await self._look()
        wanted = {digest: path for path, digest in self._files.items()}
        self._left_out &= wanted.keys()
        if gone := self._held - wanted.keys():
            self._chunks = await self._index.remove(gone)
            self._held -= gone
        todo = [digest for digest in wanted if digest not in self._held and digest not in self._left_out]
        await self._add([(digest, wanted[digest]) for digest in todo])

    async def _look(self) -> None:
        """Ask the registry and policy about the files that may have changed, or about all."""
        paths = {*self._s.state.registry.paths(), *self._files} if self._all else set(self._dirty)
        self._all = False
        self._dirty -= paths
        caller = Caller(
            agent=AgentName("semantic-index"),
            agent_class="local" if self._settings.model else "cloud",
            session=SessionId("daemon"),
            transport="daemon",
        )
        looked = list(paths)
        for at in range(0, len(looked), SLICE):
            some = looked[at : at + SLICE]
            allowed = frozenset(self._s.access.contents_of(caller, some, SHOWN))
            for path in some:
                entry = self._s.state.registry.get(path) if path in allowed else None
                if entry is not None and entry.digest is not None:
                    self._files[path] = entry.digest
                    self._left_out.discard(entry.digest)  # it may be kept by now
                else:
                    self._files.pop(path, None)
            await anyio.lowlevel.checkpoint()

    async def _add(self, todo: list[tuple[Digest, WorkspacePath]]) -> None:
        batch, held = list[ContentTexts](), 0
        try:
            for number, (digest, path) in enumerate(todo):
                if not self._judged:
                    return  # it may be hidden by now
                self._waiting = len(todo) - number
                texts = await self._texts(digest, path)
                if texts is None:
                    self._left_out.add(digest)
                    continue
                batch.append(texts)
                held += len(texts.chunks)
                if held >= BATCH_CHUNKS:
                    await self._embed(batch)
                    batch, held = [], 0
            await self._embed(batch)
        finally:
            self._waiting = 0

    async def _embed(self, batch: list[ContentTexts]) -> None:
        if batch:
            self._chunks, left_out = await self._index.add(batch)
            self._left_out |= left_out
            self._held |= {content.digest for content in batch} - left_out

    async def _texts(self, digest: Digest, path: WorkspacePath) -> ContentTexts | None:
        """What is embedded of a content; None where it is not kept, no text, or takes too long."""
        data = await self._s.journal.content(digest, most=MOST_FILE_BYTES)
        if not isinstance(data, bytes) or len(data) > MOST_FILE_BYTES:
            return None
        outline = await self._s.parser.outline(path, digest, data)
        if outline is None:
            return None
        try:
            return await self._s.workers.run(
                partial(_passages, digest, data, self._s.state.encodings.of(digest), outline)
            )
        except TextTooCostly:
            return None


def redacted(lines: Iterable[str]) -> tuple[str, ...]:
    """Lines as they may be embedded: without secrets, and such that JSON takes them."""
    hidden = SecretRedactor().hide(tuple(lines), level="all")
    return tuple(line.encode("utf-8", "replace").decode() for line in hidden)


def _passages(digest: Digest, data: bytes, known: Known, outline: Outline) -> ContentTexts | None:
    document = decode(data, like=known.written or known.like)
    if document is None:
        return None
    lines = redacted(document.lines)
    found = chunks(outline, len(lines))
    cut = [chunk for chunk in found if any(map(str.strip, lines[chunk.start - 1 : chunk.end]))][:MOST_OF_FILE]
    names = redacted(chunk.name for chunk in cut)
    named = tuple(chunk._replace(name=name) for chunk, name in zip(cut, names, strict=True))
    texts = ("\n".join((chunk.name, *lines[chunk.start - 1 : chunk.end]))[:MOST_CHARACTERS] for chunk in named)
    return ContentTexts(digest, named, tuple(texts)) if named else None
