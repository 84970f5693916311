"""Parts of the engine, made from services as the engine makes them."""

from __future__ import annotations

from orchestrator.core.policy.parse import parse_policy
from orchestrator.core.projections.state import State
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.changes.approvals import ApprovalService
from orchestrator.engine.changes.change_answers import Answers
from orchestrator.engine.changes.effects import Effects
from orchestrator.engine.changes.pipeline import ChangePipeline
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.grants import GrantService
from orchestrator.engine.leases import Leases
from orchestrator.engine.reads.read_regions import ReadSets
from orchestrator.engine.services import Services
from orchestrator.machine import SystemClock, SystemEntropy
from orchestrator.ports.machine import Clock, Entropy
from orchestrator.workspace.local import LocalWorkspace
from tests.in_memory.absent import NoCache
from tests.in_memory.journal import MemoryJournal
from tests.in_memory.workers import PlainParser, ThreadWorkers
from tests.in_memory.workspace import MemoryWorkspace

OPEN = 'name = "open"\ndefault = "allow"\n'
"""A policy that allows everything."""


def services_of(
    workspace: LocalWorkspace | MemoryWorkspace,
    *,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
    journal: MemoryJournal | None = None,
    state: State | None = None,
    policy: str = OPEN,
) -> Services:
    """Services over a workspace and a journal in memory."""
    clock, entropy = clock or SystemClock(), entropy or SystemEntropy()
    return Services(
        journal=journal or MemoryJournal(clock=clock, entropy=entropy),
        workspace=workspace,
        ignore=workspace.ignore,
        policy=parse_policy(policy, source="test"),
        clock=clock,
        entropy=entropy,
        state=state or State(),
        parser=PlainParser(),
        workers=ThreadWorkers(),
        cache=NoCache(),
    )


def pipeline_of(services: Services) -> ChangePipeline:
    """The pipeline of changes, with an observer of its own."""
    answers = Answers(services)
    return ChangePipeline(services, Observer(services), Effects(services), answers, Leases(services))


def read_sets_of(services: Services) -> ReadSets:
    """What sessions read, with nothing followed yet."""
    return ReadSets(services)


def approvals_of(services: Services, gate: ApproverGate) -> ApprovalService:
    """The answers to what waits, by the code of this gate."""
    return ApprovalService(services, pipeline_of(services), gate, GrantService(services, gate))
