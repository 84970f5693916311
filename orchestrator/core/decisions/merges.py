"""Three texts brought together as policy lets it be done; what that needs to know is asked for."""

from __future__ import annotations

from orchestrator.core.content import digest_of
from orchestrator.core.decisions.decision import Facts, Held, Need, Source
from orchestrator.core.ids import Digest
from orchestrator.core.merge_rules import AUTOMATIC_RULES
from orchestrator.core.text.encoding import Document, encode
from orchestrator.core.text.merging.automatic_merge import AutomaticMerge, UnresolvedMerge, merge_automatically
from orchestrator.core.text.merging.merge_region import Outlines


def combine(
    old: Document, current: Document, new: Document, facts: Facts, held: Held
) -> AutomaticMerge | UnresolvedMerge | Need:
    """Merge the change old → new into what is held; the outlines are asked for only where git would clash.

    Where `facts.edits` is None this is git's merge and no more: what undoes a change, or was approved
    to the letter, is settled by nobody but a person. Raises NotEncodable.
    """
    edits = facts.edits
    rules = edits.merge_rules if edits is not None else ()
    merged = merge_automatically(
        old.lines, current.lines, new.lines, path=facts.path, rules=rules, known=AUTOMATIC_RULES if edits else ()
    )
    if edits is None or (isinstance(merged, AutomaticMerge) and merged.beyond is None):
        return merged
    base, proposed = _base(old, facts), _source(new, facts)
    sources = (base, Source(facts.path, held.digest, held.data), proposed)
    missing = tuple(source for source in sources if source.digest not in facts.outlines)
    if missing:
        return Need(outlines=missing)
    outlines = Outlines(*(facts.outlines[source.digest] for source in sources))
    return merge_automatically(old.lines, current.lines, new.lines, outlines, path=facts.path, rules=rules)


def _base(old: Document, facts: Facts) -> Source:
    digest = facts.base.digest if facts.base is not None else Digest("")
    data = facts.contents.get(digest)
    return Source(facts.path, digest, data) if data is not None else _source(old, facts)


def _source(document: Document, facts: Facts) -> Source:
    data = encode(document)
    return Source(facts.path, digest_of(data), data)
