"""Parts of the engine, made from services as the engine makes them."""

from __future__ import annotations

from orchestrator.engine.changes.change_answers import Answers
from orchestrator.engine.changes.diffs import Diffs
from orchestrator.engine.changes.effects import Effects
from orchestrator.engine.changes.pipeline import ChangePipeline
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.reads.past_versions import PastVersions
from orchestrator.engine.services import Services


def answers_of(services: Services) -> Answers:
    """Answers about changes."""
    return Answers(services.journal, services.notes, Diffs(services.contents), services.state)


def pipeline_of(services: Services) -> ChangePipeline:
    """The pipeline of changes, with an observer of its own."""
    past = PastVersions(services.journal, services.contents, services.state.registry, services.permissions)
    return ChangePipeline(services, Observer(services), Effects(services), answers_of(services), past)
