"""Parts of the engine, made from services as the engine makes them."""

from __future__ import annotations

from orchestrator.engine.changes.change_answers import Answers
from orchestrator.engine.changes.effects import Effects
from orchestrator.engine.changes.pipeline import ChangePipeline
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.leases import Leases
from orchestrator.engine.reads.read_regions import ReadSets
from orchestrator.engine.services import Services


def pipeline_of(services: Services) -> ChangePipeline:
    """The pipeline of changes, with an observer of its own."""
    answers = Answers(services)
    return ChangePipeline(services, Observer(services), Effects(services), answers, Leases(services))


def read_sets_of(services: Services) -> ReadSets:
    """What sessions read, with nothing followed yet."""
    return ReadSets(services)
