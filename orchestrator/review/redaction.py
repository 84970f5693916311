"""A conflict as a reviewer may see it, without its secrets; and its answer with them back."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from orchestrator.api.conflicts import Party
from orchestrator.core.errors import escaped
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.redact import MarkerDamaged, SecretRedactor
from orchestrator.core.text.secrets import Secret
from orchestrator.ports.reviewers import (
    KeyLines,
    Lines,
    RegionText,
    ReviewRegion,
    ReviewReply,
    ReviewReplyInvalid,
    ReviewRequest,
)


class RedactedRequest:
    """One request without its secrets; `shown` may leave the machine."""

    def __init__(self, request: ReviewRequest) -> None:
        self._redactor = SecretRedactor(_texts(request))
        self.shown = msgspec.structs.replace(
            request,
            path=WorkspacePath(self.clean(request.path)),
            why=self.clean(request.why),
            regions=tuple(self._region(region) for region in request.regions),
            proposer=self._party(request.proposer),
            holders=tuple(self._party(holder) for holder in request.holders),
        )

    def restored(self, reply: ReviewReply) -> ReviewReply:
        """The answer with its secrets back, each in the region that it came from. Raises ReviewReplyInvalid."""
        shown = {region.number: region for region in self.shown.regions}
        restored = []
        for text in reply.regions:
            region = shown[text.region]
            try:
                lines = self._redactor.restore(text.lines, allowed=(*region.base, *region.current, *region.proposed))
            except MarkerDamaged as error:
                raise ReviewReplyInvalid(
                    f"region {text.region} holds {escaped(str(error))}, which is not in it: "
                    "a hidden secret can be kept or left out, not changed or moved"
                ) from error
            restored.append(RegionText(text.region, lines))
        return msgspec.structs.replace(reply, regions=tuple(restored))

    def clean(self, text: str) -> str:
        """One text without secrets, as messages and logs may hold it."""
        return "\n".join(self._redactor.hide(text.split("\n")))

    def _region(self, region: ReviewRegion) -> ReviewRegion:
        """Each side between the lines around it: a key may begin before the region and end after it.

        What began or ends beyond these lines is known from the whole texts, which `keys` are of.
        """
        before, after = region.before, region.after
        keys = region.keys or KeyLines((), (), ())
        sides: list[Lines] = []
        for side, own in zip(region, keys, strict=True):
            cut = len(region.before)
            known = (*keys.before, *_moved(own, cut), *_moved(keys.after, cut + len(side)))
            hidden = self._redactor.hide((*region.before, *side, *region.after), known)
            before = _more_hidden(region.before, before, hidden[:cut])
            sides.append(hidden[cut : cut + len(side)])
            after = _more_hidden(region.after, after, hidden[cut + len(side) :])
        return ReviewRegion(*sides, number=region.number, before=before, after=after)

    def _party(self, party: Party) -> Party:
        return Party(agent=self.clean(party.agent), task=self.clean(party.task), reason=self.clean(party.reason))


def _moved(keys: Iterable[Secret], down: int) -> tuple[Secret, ...]:
    return tuple(msgspec.structs.replace(secret, line=secret.line + down) for secret in keys)


def _more_hidden(plain: Lines, one: Lines, other: Lines) -> Lines:
    """Of two ways to hide the same lines, for each line the one that changed it."""
    return tuple(b if a == p else a for p, a, b in zip(plain, one, other, strict=True))


def _texts(request: ReviewRequest) -> list[str]:
    parties = (request.proposer, *request.holders)
    texts = [request.path, request.why]
    texts += [text for party in parties for text in (party.agent, party.task, party.reason)]
    for region in request.regions:
        texts += [*region.before, *region.base, *region.current, *region.proposed, *region.after]
    return texts
