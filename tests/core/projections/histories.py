"""Random histories that could have happened: a few files, sessions and waiting changes."""

from __future__ import annotations

from hypothesis import strategies as st

from orchestrator.core.change import Fit, PathChange, Provenance
from orchestrator.core.content import FoundFile, LineHunk, LineRange, SeenLines, Signature, digest_of
from orchestrator.core.events.base import Event, Origin, Recorded
from orchestrator.core.events.commands import CommandEnded, CommandStarted
from orchestrator.core.events.conflicts import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalRequested,
    ApprovalShown,
    ApprovalUsed,
    ConflictExpired,
    ConflictFound,
    ConflictRebased,
    ConflictResolved,
    ConflictSides,
    ConflictSuperseded,
    ElicitationAnswered,
    GrantAdded,
    GrantExpired,
    GrantRevoked,
    ReviewAccepted,
    ReviewAnswered,
    ReviewFailed,
    ReviewRejected,
    ReviewRequested,
)
from orchestrator.core.events.files import (
    AnswerShown,
    CallRefused,
    ChangeAborted,
    ChangeApplied,
    ChangeDiverged,
    ChangeIntended,
    ChangeRefused,
    ContentSearched,
    ContentShown,
    DiffShown,
    DirectoryListed,
    DivergedPath,
    ExternalBatchClosed,
    ExternalBatchOpened,
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
    FileRead,
    FilesFound,
    FileTagged,
    MetadataRead,
    OrphanContentKept,
    ReadRefused,
)
from orchestrator.core.events.journal_maintenance import (
    CheckpointSigned,
    ContentRedacted,
    ContentsCollected,
    JournalAdopted,
    PayloadRedacted,
    SegmentArchived,
    SegmentRestored,
)
from orchestrator.core.events.policies import PolicyFile, PolicyLoaded, PolicyRejected, WorkspacePolicyApproved
from orchestrator.core.events.sessions import (
    AgentAdded,
    AgentRevoked,
    AgentTokenRotated,
    ApproverCodeRefused,
    ApproverSessionClosed,
    ApproverSessionOpened,
    ApproverSet,
    BudgetExceeded,
    LeaseExpired,
    LeaseGranted,
    LeaseReleased,
    LeaseRenewed,
    NoticeShown,
    NotifiedPath,
    SessionClosed,
    SessionOpened,
    TaskBegun,
    TaskEnded,
)
from orchestrator.core.ids import AgentName, Checksum, EscapedPath, Seq, SessionId, WorkspacePath

PATHS = [WorkspacePath(name) for name in ("a.txt", "b.txt", "src/c.py")]
SESSIONS = [SessionId("s-1"), SessionId("s-2")]
AGENTS = [AgentName("alice"), AgentName("bob")]
DIGESTS = [digest_of(bytes([n])) for n in range(4)]

paths, digests = st.sampled_from(PATHS), st.sampled_from(DIGESTS)
sessions, agents = st.sampled_from(SESSIONS), st.sampled_from(AGENTS)
seqs = st.integers(1, 30).map(Seq)
tags = st.lists(st.sampled_from(["reviewed", "sensitive", "todo"]), max_size=2, unique=True).map(tuple)
signatures = st.builds(Signature, st.integers(0, 99), st.integers(0, 9), st.integers(0, 9), st.integers(0, 3))
maybe = st.none() | digests
times = st.integers(0, 50_000)
encodings = st.sampled_from([None, None, "cp1252", "shift_jis"])
provenances = st.builds(
    Provenance,
    operation=st.just("edit_file"),
    reason=st.text(max_size=3),
    approval=st.none() | seqs,
    resolves=st.none() | seqs,
    reverts=st.lists(seqs, max_size=1).map(tuple),
)
intended = st.builds(PathChange, path=paths, before=maybe, after=maybe, encoding=encodings)
changed = st.builds(
    PathChange,
    path=paths,
    before=maybe,
    after=maybe,
    signature=st.none() | signatures,
    encoding=encodings,
    hunks=st.sampled_from([(), (LineHunk(1, 1, 1, 2), LineHunk(5, 2, 6, 0))]),
    moved_from=st.sampled_from([None, None, *PATHS]),
    previous=st.none() | st.integers(1, 30),
)
seen = st.builds(
    SeenLines,
    path=paths,
    version=seqs,
    ranges=st.lists(st.builds(LineRange, st.integers(1, 9), st.integers(1, 9)), max_size=2).map(tuple),
    total_lines=st.integers(0, 9),
    cut=st.booleans(),
)
reported = st.builds(NotifiedPath, paths, seqs, st.sampled_from([(), (LineRange(2, 3), LineRange(6, 5))]))
outside = {"path": paths, "after": maybe, "signature": signatures, "mode": st.just(0o644), "kept": st.booleans()}

conflict_sides = st.builds(
    ConflictSides,
    base=maybe,
    current=maybe,
    proposed=maybe,
    base_version=st.none() | seqs,
    current_version=st.none() | seqs,
)

events: st.SearchStrategy[Event] = st.one_of(
    st.builds(SessionOpened, session=sessions, agent=agents, agent_class=st.just("cloud"), transport=st.just("rpc")),
    st.builds(SessionClosed, session=sessions),
    st.builds(TaskBegun, session=sessions, title=st.just("t")),
    st.builds(TaskEnded, session=sessions, task=seqs, outcome=st.just("")),
    st.builds(AgentAdded, name=agents, agent_class=st.just("cloud"), token_hash=st.none() | st.just("ff")),
    st.builds(AgentRevoked, name=agents),
    st.builds(AgentTokenRotated, name=agents, token_hash=st.just("ee"), former_until=st.just(9)),
    st.builds(FileRead, operation=st.just("read_file"), seen=seen, bytes=st.just(1), tokens=st.just(1)),
    st.builds(FilesFound, entries=st.lists(
        st.builds(FoundFile, path=paths, signature=signatures, mode=st.just(0o644), digest=maybe, kept=st.booleans(),
                  version=st.none() | st.integers(1, 30)), max_size=3).map(tuple)),
    st.builds(ExternalFileChanged, before=maybe, **outside),
    st.builds(ExternalFileCreated, **outside, moved_from=st.none() | paths),
    st.builds(FileTagged, path=paths, added=tags, removed=tags),
    st.builds(
        CommandStarted,
        argv=st.just(("pytest", "-q")),
        cwd=paths,
        mode=st.sampled_from(("in_place", "scratch")),
        timeout_s=st.just(120),
        rule=st.just("tests"),
    ),
    st.builds(CommandEnded, command=seqs, status=st.just("done"), exit_code=st.sampled_from((0, 1))),
    st.builds(ExternalFileRemoved, path=paths, before=maybe),
    st.builds(ChangeIntended, provenance=provenances, paths=st.tuples(intended)),
    st.builds(ChangeApplied, change=seqs, paths=st.lists(changed, min_size=1, max_size=2).map(tuple),
              provenance=provenances, fit=st.builds(Fit, on_seen_whole=st.booleans())),
    st.builds(ChangeAborted, change=seqs, cause=st.just("crash")),
    st.builds(ChangeDiverged, change=seqs, paths=st.just((DivergedPath(PATHS[0], None),))),
    st.builds(ApprovalRequested, provenance=provenances, paths=st.tuples(intended), rule=st.just("r"),
              permissions=st.just(()), expires_at=st.just(9), renews=st.none() | seqs),
    st.builds(ApprovalGranted, approval=seqs, by=st.just("p")),
    st.builds(ApprovalUsed, approval=seqs, tool=st.just("claude Bash")),
    st.builds(ApprovalShown, approval=seqs, digest=st.just("sha256:00"), start=st.sampled_from(["", "1:0"]),
              next=st.sampled_from(["", "1:0"]), whole=st.booleans(), via=st.none() | st.just("a")),
    st.builds(ElicitationAnswered, approval=seqs, question=seqs, via=st.just("a"), action=st.just("decline")),
    st.builds(GrantAdded, agent=st.just("a"), globs=st.just(("*.py",)), actions=st.just(("write",)), expires_at=times,
              approval=seqs, by=st.just("p")),
    st.builds(GrantRevoked, grant=seqs, by=st.just("p")),
    st.builds(GrantExpired, grant=seqs, cause=st.just("timeout")),
    st.builds(ApprovalDenied, approval=seqs, by=st.just("p")),
    st.builds(ApprovalExpired, approval=seqs, cause=st.just("timeout")),
    st.builds(ConflictFound, path=paths, sides=conflict_sides, provenance=provenances),
    st.builds(ConflictResolved, conflict=seqs, choice=st.just("current"), by=st.just("p"), change=st.none() | seqs),
    st.builds(ConflictSuperseded, conflict=seqs, change=seqs),
    st.builds(ConflictRebased, conflict=seqs, sides=conflict_sides, fits=st.booleans(), path=st.none() | paths,
              moved_at=st.none() | seqs),
    st.builds(ConflictExpired, conflict=seqs, cause=st.sampled_from(["already_applied", "timeout"])),
    st.builds(ReviewRequested, conflict=seqs, reviewer=st.sampled_from(["one", "two"]), route=st.just("r"),
              deadline=times),
    st.builds(ReviewAnswered, review=seqs, conflict=seqs, reviewer=st.just("one"), proposal=maybe,
              verdict=st.sampled_from(["current", "reject"]), ignored=st.sampled_from(["", "late"])),
    st.builds(ReviewFailed, review=seqs, conflict=seqs, code=st.just("reviewer_timeout")),
    st.builds(ReviewAccepted, review=seqs, conflict=seqs, by=st.just("policy"), change=st.none() | seqs),
    st.builds(ReviewRejected, review=seqs, conflict=seqs, by=st.just("p")),
    st.builds(LeaseGranted, globs=st.sampled_from([("src",), ("*.txt", "!a.txt"), ("/a.txt", "b.*")]),
              mode=st.sampled_from(["exclusive", "shared"]), expires_at=times, task=st.none() | seqs,
              reason=st.text(max_size=3)),
    st.builds(LeaseRenewed, lease=seqs, expires_at=times),
    st.builds(LeaseReleased, lease=seqs, by=st.just("p")),
    st.builds(LeaseExpired, lease=seqs),
    st.builds(
        BudgetExceeded,
        budget=st.just("calls"),
        period=st.sampled_from(["session", "day"]),
        most=st.just(1),
        used=st.just(1),
    ),
    st.builds(ApproverSet, salt=st.just("01"), scrypt=st.sampled_from(["02", "03"]), by=st.just("first_up")),
    st.builds(ApproverCodeRefused, pid=st.just(7)),
    st.builds(ApproverSessionOpened, pid=st.just(7)),
    st.builds(ApproverSessionClosed, cause=st.sampled_from(["disconnected", "idle", "code_replaced"]), pid=st.just(7)),
    st.builds(ContentShown, session=sessions, seen=seen),
    st.builds(NoticeShown, session=sessions, paths=st.lists(reported, max_size=2).map(tuple)),
    st.builds(ContentSearched, pattern=st.just("x"), path=st.just("."), globs=st.just(()),
              seen=st.lists(seen, max_size=2).map(tuple), total=st.just(1), files_searched=st.just(1),
              left_out=st.just(0), tokens=st.just(1)),
    st.builds(DiffShown, path=paths, from_version=seqs, to_version=seqs, seen=st.lists(seen, max_size=2).map(tuple)),
    st.builds(AnswerShown, operation=st.just("list_conflicts"), seen=st.lists(seen, max_size=2).map(tuple)),
    st.builds(ExternalBatchOpened, trigger=st.just("watch")),
    st.builds(ExternalBatchClosed, group=seqs, changes=st.just(1)),
    st.sampled_from([
        MetadataRead(operation="file_info", path=EscapedPath("a")),
        DirectoryListed(operation="list_files", path=PATHS[0], globs=(), entries=1),
        ReadRefused(operation="read_file", path=EscapedPath("a"), code="c", message="m"),
        CallRefused(operation="x", code="c", message="m"),
        ChangeRefused(operation="x", paths=(), code="c", message="m"),
        OrphanContentKept(path=PATHS[0], digest=DIGESTS[0], size=1, change=Seq(1)),
        PolicyLoaded(digest=Checksum(DIGESTS[0]), source="s", rules=1, files=(PolicyFile("state", "s", DIGESTS[1]),)),
        PolicyRejected(source="s", digest=Checksum(DIGESTS[0]), message="m"),
        WorkspacePolicyApproved(digest=DIGESTS[1], by="p"),
        CheckpointSigned(journal="1f", head=Seq(1), head_hash="0a", key="0b", signature="0c"),
        PayloadRedacted(target=Seq(1), fields=("reason",), by="p"),
        ContentRedacted(digest=DIGESTS[0], size=1, by="p"),
        ContentsCollected(digests=(DIGESTS[0],), bytes=1),
        SegmentArchived(first=Seq(1), last=Seq(2), last_hash="0d", file="f", digest=Checksum(DIGESTS[0]), size=1),
        SegmentRestored(first=Seq(1), last=Seq(2), file="f"),
        JournalAdopted(by="p", head=Seq(1), known_head=Seq(2)),
    ]),
)  # fmt: skip


def record(seq: int, event: Event, session: SessionId | None, agent: AgentName | None) -> Recorded:
    """An envelope around an event; the chain plays no part in a fold."""
    return Recorded(
        seq=Seq(seq),
        at=seq * 1000,
        stream="s",
        stream_version=seq,
        origin=Origin(session=session, agent=agent),
        event=event,
        payload_hash=b"",
        prev_hash=b"",
        hash=seq.to_bytes(32, "big"),
    )


OPENINGS: list[tuple[Event, SessionId | None, AgentName | None]] = [
    (SessionOpened(session=session, agent=agent, agent_class="cloud", transport="rpc"), session, agent)
    for session, agent in zip(SESSIONS, AGENTS, strict=True)
]
"""With both sessions open, most of what follows means something to them."""

histories = st.tuples(
    st.sampled_from([OPENINGS, []]), st.lists(st.tuples(events, st.none() | sessions, st.none() | agents), max_size=40)
).map(
    lambda parts: [
        record(at, event, session, agent) for at, (event, session, agent) in enumerate([*parts[0], *parts[1]], 1)
    ]
)
