"""The session, the daemon, approvals, agents and policy, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.api import results as r
from orchestrator.clients.render.answers import rendered
from orchestrator.clients.render.text import diff_lines, facts, go_on, some, table, verdict, when
from orchestrator.core.errors import escaped, plural


@rendered.register
def _session(info: r.SessionInfo) -> Iterator[str]:
    yield from facts(
        ("session", info.session),
        ("agent", f"{info.agent} ({info.agent_class}{', asserted' if info.asserted else ''})"),
        ("workspace", info.workspace),
        ("head", info.head),
    )
    for title, rows in (
        ("read", [(x.path, x.version_id, x.lines, "stale" if x.stale else "") for x in info.recent_reads]),
        ("waits", [(x.id, x.kind, x.path, when(x.since)) for x in info.pending]),
        ("changed", [(x.change, x.operation, some(x.paths), when(x.at)) for x in info.uncommitted_changes]),
        ("leases", [(x.lease, x.agent, x.mode, " ".join(x.globs), when(x.expires_at)) for x in info.leases]),
        ("tasks", [(x.task, x.title, x.agent, when(x.since)) for x in info.tasks]),
    ):
        if rows:
            yield f"{title}:"
            yield from (f"  {line}" for line in table(rows))


@rendered.register
def _status(info: r.StatusInfo) -> Iterator[str]:
    health = info.health
    yield from facts(
        ("workspace", info.workspace),
        ("state", health.state + ("" if health.baseline == "done" else ", first scan running")),
        ("watching", health.watching if health.watching != "live" else ""),
        ("head", info.head),
        ("approvals", str(info.approvals)),
        ("conflicts", str(info.conflicts)),
        ("policy", info.policy),
        ("leases", ", ".join(f"{lease.lease} {lease.agent}" for lease in info.leases)),
        ("approver", info.approver),
        ("daemon", f"pid {info.pid}, version {info.version}"),
        ("socket", info.socket),
        ("state dir", info.state_dir),
        ("journal", _checked(health.checked)),
        ("verified", health.whole),
        ("recovered", str(health.recovered) if health.recovered else ""),
        ("diverged", ", ".join(health.diverged)),
    )
    yield from (f"  {escaped(note)}" for note in health.notes)
    sessions = [line for line in info.sessions if line.open]
    yield f"sessions: {len(sessions)}"
    yield from table(
        ("", line.agent + (" (asserted)" if line.asserted else ""), line.agent_class, line.client, line.session)
        for line in sessions
    )


def _checked(checked: str) -> str:
    """What this run knows of the journal, and no more."""
    if checked == "running":
        return "checked since this start: the last events; the check of the others is running"
    if checked.startswith("@"):
        return f"checked since this start: chain up to {checked}, pages; not contents and tables (`journal verify`)"
    return f"check {checked}" if checked else ""


@rendered.register
def _approvals(result: r.Approvals) -> Iterator[str]:
    if not result.approvals:
        yield "nothing waits for an approval"
    yield from table(
        (a.approval, when(a.since), a.agent or "", a.operation, some(a.paths, a.path_count), a.reason)
        for a in result.approvals
    )
    yield from go_on(len(result.approvals), result.total, result.cursor)


@rendered.register
def _approval(result: r.ApprovalInfo) -> Iterator[str]:
    yield from facts(
        ("approval", result.approval),
        ("what", f"{result.operation} {', '.join(result.paths)}"),
        ("asked by", result.agent),
        ("since", when(result.since)),
        ("expires", when(result.expires_at)),
        ("rule", result.rule),
        ("reason", result.reason),
    )
    yield from diff_lines(result.diff or "")


@rendered.register
def _agents(result: r.Agents) -> Iterator[str]:
    return table((agent.name, agent.agent_class, agent.token) for agent in result.agents)


@rendered.register
def _token(made: r.AgentToken) -> Iterator[str]:
    yield made.token


@rendered.register
def _code(made: r.ApproverCode) -> Iterator[str]:
    yield f"New approver code, shown this once: {made.approver_code}"


@rendered.register
def _policy(result: r.PolicyReport) -> Iterator[str]:
    yield verdict(result.ok, f"{escaped(result.source)}: {plural(result.rules, 'rule')}")
    yield from table((str(p.line), p.key, p.message) for p in result.problems)
