"""The reviewers that a policy names, made at their first use, and again when their settings change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from orchestrator.core.policy.reviewers import ReviewerSettings
from orchestrator.core.policy.rules import Policy
from orchestrator.extensions.manager import Extensions
from orchestrator.ports.machine import Clock, Entropy
from orchestrator.ports.reviewers import Reviewer
from orchestrator.review.human import HumanReviewer
from orchestrator.review.plugin_reviewer import PluginReviewer
from orchestrator.review.program import ProgramReviewer


class Backends(Mapping[str, Reviewer]):
    """By name; follows the policy when that is loaded anew."""

    def __init__(
        self,
        policy: Callable[[], Policy],
        *,
        clock: Clock,
        entropy: Entropy,
        environment: Mapping[str, str],
        workspace: Path,
        extensions: Extensions,
    ) -> None:
        self._policy, self._clock, self._entropy = policy, clock, entropy
        self._environment, self._workspace, self._extensions = environment, workspace, extensions
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
        match settings.kind:
            case "model":
                from orchestrator.review.model import ModelReviewer  # httpx2 takes 50 ms of a start

                return ModelReviewer(
                    settings,
                    clock=self._clock,
                    entropy=self._entropy,
                    environment=self._environment,
                    workspace=self._workspace,
                )
            case "program":
                return ProgramReviewer(settings, clock=self._clock, environment=self._environment)
            case "human":
                return HumanReviewer()
            case "plugin":
                return PluginReviewer(settings, self._extensions)
