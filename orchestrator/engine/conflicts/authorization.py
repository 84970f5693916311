"""Which agents may settle which conflicts."""

from __future__ import annotations

from orchestrator.core.errors import Denied, NotPermitted, escaped
from orchestrator.core.ids import show
from orchestrator.core.policy.rules import NeedApproval
from orchestrator.core.projections.pending import Conflict
from orchestrator.engine.caller import Caller
from orchestrator.engine.services import Services


def authorize_resolution(services: Services, caller: Caller, conflict: Conflict, choice: str) -> None:
    """An agent judges where policy lets it review, sees all that it judges, and never lets its own side stand.

    Where policy asks about a review, a change waits for a person (`Settle.reviews`); to leave the file as it
    is has nothing that could wait, and is a person's. Raises Denied, NotPermitted.
    """
    found, number = conflict.found, show(conflict.seq)
    for name in (found.path, *found.names):
        verdict = services.permit(caller, "review", name, on_disk=True)
        if not services.readable(caller, name):
            raise Denied(
                f"review {escaped(name)}: its content is not shown to {caller.agent}, so it can't settle {number}",
                details={"path": escaped(name), "action": "read"},
            )
        if isinstance(verdict, NeedApproval) and (choice == "current" or name != found.path):
            raise NotPermitted(
                f"policy asks a person about reviews of {escaped(name)}: {verdict.reason}",
                hint=f"A person settles it: `orchestrator conflicts resolve {number}`.",
            )
    if caller.agent == conflict.agent and choice != "current":
        raise NotPermitted(
            f"{number} is {caller.agent}'s own: somebody else judges whether it shall be",
            hint="Withdraw it with choice 'current', or await_change.",
        )
