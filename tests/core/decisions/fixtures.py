"""Facts for decisions, written briefly."""

from __future__ import annotations

from orchestrator.core.content import digest_of
from orchestrator.core.decisions.decision import Apply, Base, Facts, Held, Outcome
from orchestrator.core.ids import Digest, Seq, WorkspacePath

PATH = WorkspacePath("a.txt")


def held(text: str | None, mode: int = 0o644) -> Held | None:
    """A file with this content; None for no file."""
    return Held(text.encode(), digest_of(text.encode()), mode) if text is not None else None


def facts(
    now: str | None,
    *,
    base: str | None = None,
    base_version: int = 5,
    version: int = 9,
    implied: bool = True,
    whole: bool = True,
    kept: bool = True,
    path: WorkspacePath = PATH,
) -> Facts:
    """The file holds `now`; the change is made against `base`, which is in the blob store if `kept`."""
    contents: dict[Digest, bytes] = {}
    made_against = None
    if base is not None:
        made_against = Base(Seq(base_version), digest_of(base.encode()), implied, whole)
        if kept:
            contents[made_against.digest] = base.encode()
    return Facts(path, held(now), Seq(version) if now is not None else None, made_against, contents)


def new_data(outcome: Outcome) -> bytes:
    """What a change of one file makes of it."""
    assert isinstance(outcome, Apply)
    content = outcome.content(outcome.paths[0])
    assert content is not None
    assert isinstance(content.data, bytes)
    return content.data
