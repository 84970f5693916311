"""Decisions with all that they ask for: contents by digest, and outlines made by the real grammars."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from orchestrator.core.content import digest_of
from orchestrator.core.decisions.commands import Command
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts, Need, Source
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.text.outline import plain_outline
from orchestrator.core.text.symbols import Outline, language_of
from orchestrator.workspace.local_parser import outlined


def decided(
    command: Command, facts: Mapping[WorkspacePath, Facts], contents: tuple[bytes, ...] = ()
) -> Apply | ConflictOutcome:
    """What becomes of a command; asked again until it needs nothing more."""
    kept: dict[Digest, bytes] = {digest_of(data): data for data in contents}
    known = dict(facts)
    while isinstance(outcome := command.decide(known), Need):
        outlines = {source.digest: _outline(source) for source in outcome.outlines}
        assert outlines or outcome.digests
        fetched = {digest: kept[digest] for digest in outcome.digests}
        known = {
            path: msgspec.structs.replace(f, contents={**f.contents, **fetched}, outlines={**f.outlines, **outlines})
            for path, f in known.items()
        }
    return outcome


def _outline(source: Source) -> Outline | None:
    language = language_of(source.path)
    if language is None:
        return plain_outline(source.data.decode().split("\n"))
    return outlined(language, source.data, 4.0)
