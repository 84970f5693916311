"""The reviewers that a policy names, made at their first use, and again when their settings change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import anyio

from orchestrator.core.policy.rules import HumanSettings, PluginSettings, Policy, ProgramSettings, ReviewerSettings
from orchestrator.extensions.manager import Extensions
from orchestrator.ports.machine import Clock
from orchestrator.ports.reviewers import Reviewer, ReviewReply, ReviewRequest
from orchestrator.review.plugin_reviewer import plugin_reviewer
from orchestrator.review.program import program_reviewer


class Reviewers(Mapping[str, Reviewer]):
    """By name; follows the policy when that is loaded anew."""

    def __init__(
        self,
        policy: Callable[[], Policy],
        *,
        clock: Clock,
        environment: Mapping[str, str],
        variables_fd: int | None,
        workspace: str,
        extensions: Extensions,
    ) -> None:
        self._policy = policy
        self._program = partial(
            program_reviewer, clock=clock, environment=environment, variables_fd=variables_fd, workspace=workspace
        )
        self._plugin = partial(plugin_reviewer, extensions=extensions, clock=clock)
        self._made: dict[str, tuple[ReviewerSettings, Reviewer]] = {}

    def __getitem__(self, name: str) -> Reviewer:
        settings = next((item for item in self._policy().reviewers if item.name == name), None)
        if settings is None:
            raise KeyError(name)
        made = self._made.get(name)
        if made is None or made[0] != settings:  # with other settings it counts its costs anew
            made = self._made[name] = (settings, self._make(settings))
        return made[1]

    def __iter__(self) -> Iterator[str]:
        return iter([settings.name for settings in self._policy().reviewers])

    def __len__(self) -> int:
        return len(self._policy().reviewers)

    def _make(self, settings: ReviewerSettings) -> Reviewer:
        match settings:
            case ProgramSettings():
                return self._program(settings)
            case HumanSettings():
                return HumanReviewer()
            case PluginSettings():
                return self._plugin(settings)


class HumanReviewer:
    """Calls nobody: the conflict waits in the list until a person resolves it, or its time is up."""

    async def review(self, request: ReviewRequest) -> ReviewReply:
        """Until cancelled: a person answers by `orchestrator conflicts resolve`, which ends the review."""
        await anyio.sleep_forever()
        raise AssertionError("slept for ever")
