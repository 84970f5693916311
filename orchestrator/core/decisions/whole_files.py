"""Patches that replace a file's whole content: added over it, or deleted and added."""

from __future__ import annotations

from orchestrator.core.decisions import rebase
from orchestrator.core.decisions.decision import Base, Facts, Need, Outcome
from orchestrator.core.decisions.permissions import with_bits
from orchestrator.core.errors import FileNotFound, PatchInvalid
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.forms.left_out import refuse_elided_whole
from orchestrator.core.text.patch import FilePatch


def replace_whole(parsed: FilePatch, facts: Facts) -> Outcome:
    """As a write of the whole content. A deletion that quotes lines must quote all of them, as its author saw them.

    Raises what `truncate` raises, FileNotFound where there is nothing to delete, PatchInvalid.
    """
    if parsed.old_path is not None and facts.held is None:
        raise FileNotFound(facts.path, "there is no such file")
    outcome = rebase.truncate(parsed.whole or "", facts)
    quoted = tuple(text for hunk in parsed.hunks for text in hunk.old)
    if isinstance(outcome, Need) or facts.base is None:
        return outcome
    if not facts.content_hidden:
        refuse_elided_whole("patch", parsed.whole or "", lines_at_base(facts, facts.base), facts.path)
    if quoted and quoted != lines_at_base(facts, facts.base):
        raise PatchInvalid(
            f"the patch deletes {facts.path} and adds it again, but does not quote all of its lines",
            hint="Send a fresh patch, or write_file(mode=truncate).",
        )
    return with_bits(outcome, parsed, facts.held)


def lines_at_base(here: Facts, base: Base) -> tuple[str, ...]:
    """What the author saw; no lines where that is not text, or not there any more."""
    held = here.held
    if held is not None and held.digest == base.digest:
        document = held.document or decode(held.data)
    else:
        document = decode(here.contents[base.digest]) if base.digest in here.contents else None
    return document.lines if document is not None else ()
