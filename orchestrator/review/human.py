"""A person as a reviewer."""

from __future__ import annotations

import anyio

from orchestrator.ports.reviewers import ReviewReply, ReviewRequest


class HumanReviewer:
    """Calls nobody: the conflict waits in the list until a person resolves it, or its time is up."""

    async def review(self, request: ReviewRequest) -> ReviewReply:
        """Until cancelled: a person answers by `orchestrator conflicts resolve`, which ends the review."""
        await anyio.sleep_forever()
        raise AssertionError("slept for ever")
