"""Which requests an agent may answer, where policy lets it approve; people answer with their code."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.core.errors import Denied, NotPermitted, escaped
from orchestrator.core.ids import AgentName, WorkspacePath, show
from orchestrator.core.policy.rules import BUILT_IN
from orchestrator.core.projections.pending import Approval


def authorize_agent(approval: Approval, agent: AgentName, unread: Sequence[WorkspacePath]) -> None:
    """An agent sees all that it approves, never approves its own change, nor what a built-in rule asks a person.

    `unread`: the paths of the request that it may not read. Raises Denied, NotPermitted.
    """
    number = show(approval.seq)
    if unread:
        raise Denied(
            f"approve {escaped(unread[0])}: its content is not shown to {agent}, so it can't answer {number}",
            details={"path": escaped(unread[0]), "action": "read"},
        )
    if agent == approval.agent:
        raise NotPermitted(f"{number} is {agent}'s own; an agent can't answer its own request", hint=_PERSON)
    if any(rule.startswith(BUILT_IN) for rule in approval.request.rule.split("; ")):
        raise NotPermitted(f"a built-in rule asks a person about {number}: {approval.request.rule}", hint=_PERSON)


_PERSON = "A person answers it: `orchestrator approvals answer`."
