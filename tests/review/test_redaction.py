"""A conflict hidden from its reviewer: every text of it, and keys that are only partly in sight."""

from __future__ import annotations

import msgspec
import pytest

from orchestrator.api.conflicts import Party
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.redact import MARKER
from orchestrator.core.text.secrets import Secret
from orchestrator.ports.reviewers import KeyLines, RegionText, ReviewRegion, ReviewReply, ReviewReplyInvalid
from orchestrator.review.redaction import RedactedRequest
from tests.review.conflicts import SECRET, conflict

BASE, CURRENT, PROPOSED, BEFORE, AFTER = (f"- {letter * 3}+Ab1/cD2eF3gH4iJ5kL6mN7" for letter in "bcpqa")
REQUEST = msgspec.structs.replace(
    conflict(),
    regions=(
        ReviewRegion(
            number=1,
            base=("x", BASE),
            current=(CURRENT,),
            proposed=("x", "x", PROPOSED),
            before=(BEFORE, "plain"),
            after=("plain", AFTER),
            keys=KeyLines(
                before=(Secret(0, 0, len(BEFORE), "private-key"),),
                base=(Secret(1, 0, len(BASE), "private-key"),),
                current=(Secret(0, 0, len(CURRENT), "private-key"),),
                proposed=(Secret(2, 0, len(PROPOSED), "private-key"),),
                after=(Secret(1, 0, len(AFTER), "private-key"),),
            ),
        ),
        ReviewRegion(number=2, base=("y",), current=("y1",), proposed=("y2",)),
    ),
)


def test_each_side_hides_what_is_known_to_be_a_keys() -> None:
    region = RedactedRequest(REQUEST).shown.regions[0]
    plain = [
        [at for at, line in enumerate(lines) if not MARKER.fullmatch(line)]
        for lines in (region.before, region.base, region.current, region.proposed, region.after)
    ]
    assert plain == [[1], [0], [], [0, 1], [0]]
    assert region.keys is msgspec.UNSET


def test_a_key_that_the_reviewer_keeps_comes_back_and_in_its_own_region_only() -> None:
    veiled = RedactedRequest(REQUEST)
    (marker,) = veiled.shown.regions[0].current

    def answered(region: int) -> ReviewReply:
        return veiled.restored(ReviewReply(verdict="content", regions=(RegionText(region, ("kept", marker)),)))

    assert answered(1).regions[0].lines == ("kept", CURRENT)
    with pytest.raises(ReviewReplyInvalid):
        answered(2)


def test_no_text_of_a_request_is_sent_as_it_is() -> None:
    request = msgspec.structs.replace(
        conflict(secret=True),
        path=WorkspacePath(f"dir/{SECRET}.txt"),
        why=f"both changed {SECRET}",
        language="python",
        proposer=Party(agent=f"bob {SECRET}", task=f"task {SECRET}", reason=f"two\nlines {SECRET}"),
        holders=(Party(agent=SECRET, task=SECRET, reason=SECRET),),
    )
    veiled = RedactedRequest(request)
    assert SECRET not in msgspec.json.encode(veiled.shown).decode()
    assert veiled.shown.path == "dir/[redacted:github-token#1].txt"
    assert (veiled.shown.language, veiled.shown.conflict) == ("python", "@7")
