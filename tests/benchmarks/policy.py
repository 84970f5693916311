"""A decision under 200 rules, and all that an edit asks of policy beside the edit itself."""

from __future__ import annotations

from itertools import cycle

from orchestrator.api.policy_files import shipped_policies
from orchestrator.clients.python import Replacement
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.evaluate import evaluate
from orchestrator.core.policy.parse import parse_policy
from orchestrator.core.policy.rules import Action, Policy, Request
from tests.benchmarks.measuring import Row, Target, in_turns, plain
from tests.benchmarks.setting import Rows, Setting

RULES = 200
PATHS = [WorkspacePath(f"src/part_{n % 40}/deep/name_{n}.{'py' if n % 3 else 'sql'}") for n in range(2_000)]
AN_EDITS = 20
"""Decisions; an edit of one file asks about half as many."""


def two_hundred_rules() -> Policy:
    """The default, and rules of a team's own, a tenth of them by size and by task."""
    rules = []
    for n in range(RULES - 10):
        verdict = ("allow", "ask", "deny")[n % 3]
        more = ("max_bytes = 50000", 'task = "release *"')[n % 2] if n % 10 == 0 else ""
        rules.append(
            f'[[rule]]\nname = "r{n}"\nagents = ["class:cloud", "bot-{n}"]\nactions = ["read", "create", "write"]\n'
            f'paths = ["area_{n}/**", "part_{n}/gen/*.py", "!*.example"]\nverdict = "{verdict}"\n{more}\n'
        )
    text = 'name = "team"\nextends = "default"\n' + "".join(rules)
    return parse_policy(text, source="policy.toml", shipped=shipped_policies())


async def rows(setting: Setting) -> Rows:
    """Warm: each path was judged before, as those of a working session are."""
    policy, paths = two_hundred_rules(), cycle(PATHS)
    actions: cycle[Action] = cycle(("read", "write", "search"))

    def decide() -> None:
        evaluate(policy, Request("claude", "cloud", next(actions), next(paths), size=4000, task="Release 4"))

    def cold() -> None:
        for path in PATHS:
            evaluate(anew, Request("claude", "cloud", "write", path))

    def an_edits() -> None:
        for _ in range(AN_EDITS):
            decide()

    for _ in range(3 * len(PATHS)):
        decide()
    taken = await in_turns({"one": plain(decide), "edit": plain(an_edits)}, setting.times(5_000))
    anew = two_hundred_rules()
    first = await in_turns({"cold": plain(cold)}, 1, warm_up=0)
    (setting.daemon.workspace / "policy.txt").write_text("0\n")
    async with setting.daemon.client("policy-bench") as agent:
        numbers = iter(range(1_000_000))

        async def edit() -> object:
            n = next(numbers)
            return await agent.edit_file("policy.txt", [Replacement(search=f"{n}\n", replace=f"{n + 1}\n")])

        edits = await in_turns({"edit": edit}, setting.times(60))
    most = edits["edit"].median * 0.05
    return [
        Row(work=f"a decision, {len(policy.rules)} rules, warm", ours=taken["one"], target=Target(at_most_ms=0.02)),
        Row(work=f"{len(PATHS)} paths judged for the first time", ours=first["cold"]),
        Row(work=f"{AN_EDITS} decisions, beside 5 % of an edit", ours=taken["edit"], target=Target(at_most_ms=most)),
        Row(work="that edit", ours=edits["edit"]),
    ]
