"""One sample of every event, with a value in every field; what `tests/golden/events` holds as stored bytes."""

from __future__ import annotations

from orchestrator.core.change import Directories, Fit, PathChange, PermissionCheck, Provenance, UnseenChange
from orchestrator.core.commands import CommandLine
from orchestrator.core.content import FoundFile, LineHunk, LineRange, ResolvedRegion, SeenLines, Signature, Span
from orchestrator.core.events import commands as r
from orchestrator.core.events import conflicts as c
from orchestrator.core.events import files as f
from orchestrator.core.events import journal_maintenance as k
from orchestrator.core.events import policies as y
from orchestrator.core.events import sessions as s
from orchestrator.core.events.base import Event
from orchestrator.core.ids import AgentName, Checksum, Digest, EscapedPath, Seq, SessionId, WorkspacePath
from tests.regions import region

A = Digest("sha256:" + "a" * 64)
B = Digest("sha256:" + "b" * 64)
C = Digest("sha256:" + "c" * 64)
PATH = WorkspacePath("src/größe.py")
OLD = WorkspacePath("src/old.py")
SESSION = SessionId("s-1f")
AGENT = AgentName("claude")
SIGNATURE = Signature(120, 1_700_000_000_000_000_001, 1_700_000_000_000_000_002, 77)
SEEN = SeenLines(path=PATH, version=Seq(3), ranges=(LineRange(1, 20), LineRange(31, 40)), total_lines=90, cut=True)
INTENDED = PathChange(
    path=PATH,
    before=A,
    after=B,
    hunks=(LineHunk(3, 1, 3, 2),),
    mode=0o644,
    temp=".orchestrator-1.tmp",
    moved_from=OLD,
    rewritten=True,
    encoding="gb18030",
)
UNSEEN = UnseenChange(
    path=PATH, version=Seq(3), seen=LineRange(4, 5), now=LineRange(6, 5), by=("bob", "outside"), since=Seq(12)
)
WHY = Provenance(
    operation="edit_file",
    task=Seq(6),
    reason="the tests fail",
    reverts=(Seq(2),),
    supersedes=Seq(4),
    resolves=Seq(7),
    approval=Seq(5),
    grants=(Seq(60),),
    accepted_by="person:ada",
    unseen=(UNSEEN,),
)
FIT = Fit(
    rung="merged",
    score=0.975,
    base=Seq(3),
    on_seen_whole=True,
    same_symbol=("Shop.close",),
    merge=(ResolvedRegion(PATH, "imports", "only imports stand here", region(1, 0, 1, 2, 1, 3), Span(1, 5)),),
    warnings=("setuid dropped",),
)
CHANGED = PathChange(
    path=PATH,
    before=A,
    after=B,
    hunks=(LineHunk(3, 1, 3, 2),),
    mode=0o644,
    signature=SIGNATURE,
    moved_from=OLD,
    previous=Seq(3),
)

SAMPLES: tuple[Event, ...] = (
    s.AgentAdded(name=AGENT, agent_class="cloud", token_hash="0f" * 32, read_only=True, expires_at=1_800_000_000_000),
    s.AgentRevoked(name=AGENT),
    s.ApproverSet(salt="01" * 16, scrypt="02" * 32, by="first_up"),
    s.SessionOpened(
        session=SESSION, agent=AGENT, agent_class="cloud", transport="mcp", asserted=True, client="code 2.1"
    ),
    s.SessionClosed(session=SESSION),
    s.TaskBegun(session=SESSION, title="mend the parser"),
    s.TaskEnded(session=SESSION, task=Seq(6), outcome="done"),
    f.FileRead(
        operation="read_file",
        seen=SEEN,
        bytes=1200,
        tokens=300,
        approval=Seq(5),
        hidden=(f.HiddenSecret(2, 9, 49, "github-token"),),
        known_from=Seq(4),
        from_end=LineRange(-20, -1),
    ),
    f.MetadataRead(operation="file_info", path=EscapedPath("src/a.py")),
    f.DirectoryListed(operation="list_files", path=WorkspacePath("src"), globs=("*.py",), entries=12),
    f.ContentSearched(
        pattern="def (\\w+)",
        path=WorkspacePath("."),
        globs=("*.py",),
        mode="regex",
        seen=(SEEN,),
        total=9,
        files_searched=4,
        left_out=1,
        tokens=80,
    ),
    f.DiffShown(path=PATH, from_version=Seq(3), to_version=Seq(9), seen=(SEEN,), tokens=40),
    f.ReadRefused(operation="read_file", path=EscapedPath(".env"), code="denied", message="no", rule="secrets"),
    f.CallRefused(operation="read\\x1bfile", code="unknown_operation", message="no such operation"),
    f.ContentShown(session=SESSION, seen=SEEN),
    f.ChangeIntended(
        provenance=WHY,
        paths=(INTENDED, PathChange(path=WorkspacePath("new"), before=None, after=None, directory="made")),
        fit=FIT,
        directories=Directories(
            made=(WorkspacePath("src/deep"),), emptied=(WorkspacePath("src"),), unmade=(WorkspacePath("d4/x"),)
        ),
        leases=(Seq(36),),
    ),
    f.ChangeApplied(
        change=Seq(16),
        provenance=WHY.without_reason(),
        paths=(CHANGED, PathChange(path=OLD, before=A, after=None, binary=True)),
        fit=FIT,
        recovered=True,
    ),
    f.ChangeAborted(change=Seq(16), cause="file_busy"),
    f.ChangeDiverged(change=Seq(16), paths=(f.DivergedPath(path=PATH, found=C, temp_found=B),)),
    f.ChangeRefused(
        operation="edit_file",
        paths=(EscapedPath("src/a.py"),),
        code="search_ambiguous",
        message="three times",
        hint="add a line",
        rule="default",
    ),
    f.FilesFound(
        entries=(
            FoundFile(path=PATH, signature=SIGNATURE, mode=0o644),
            FoundFile(path=OLD, signature=SIGNATURE, mode=0o755, digest=A, kept=True, version=3),
        )
    ),
    f.ExternalFileChanged(path=PATH, before=A, after=C, signature=SIGNATURE, mode=0o644, kept=True),
    f.ExternalFileCreated(path=PATH, after=C, signature=SIGNATURE, mode=0o644, kept=False),
    f.ExternalFileRemoved(path=PATH, before=A),
    f.OrphanContentKept(path=PATH, digest=C, size=11, change=Seq(16)),
    c.ConflictFound(
        provenance=WHY,
        path=PATH,
        sides=c.ConflictSides(
            base=A,
            current=C,
            proposed=B,
            base_version=Seq(3),
            current_version=Seq(22),
            regions=(region(1, 2, 3, 4, 5, 6),),
        ),
        mode=0o644,
        names=(OLD,),
        why="it would not parse",
        fit=FIT,
    ),
    c.ConflictResolved(conflict=Seq(26), choice="proposed", by="ada", change=Seq(16), reason="newer"),
    c.ConflictSuperseded(conflict=Seq(26), change=Seq(16)),
    c.ApprovalRequested(
        provenance=WHY,
        paths=(INTENDED,),
        rule="ci: files that run code",
        permissions=(
            PermissionCheck("revert", PATH, others_work=True),
            PermissionCheck("create", OLD, directory=True, size=120),
        ),
        expires_at=1_700_000_900_000,
        fit=FIT,
        directories=Directories(emptied=(WorkspacePath("src"),), unmade=(WorkspacePath("d4/x"),)),
        read_version=Seq(3),
        renews=Seq(5),
    ),
    c.ApprovalGranted(
        approval=Seq(29), by="ada", expires_at=1_700_000_900_000, digest=Checksum(A), unseen=True, via=AGENT
    ),
    c.ApprovalDenied(approval=Seq(29), by="ada", reason="not now", via=AGENT),
    c.ApprovalExpired(approval=Seq(29), cause="base_changed", message="the file moved on"),
    y.PolicyLoaded(
        digest=Checksum(A),
        source="policies/default.toml",
        rules=14,
        files=(y.PolicyFile("shipped", "policies/default.toml", B),),
    ),
    f.ExternalBatchOpened(trigger="watch"),
    f.ExternalBatchClosed(group=Seq(34), changes=12),
    s.LeaseGranted(globs=("src/**",), mode="exclusive", expires_at=1_700_000_600_000, task=Seq(6), reason="a rename"),
    s.LeaseRenewed(lease=Seq(36), expires_at=1_700_001_200_000),
    s.LeaseReleased(lease=Seq(36), by="claude"),
    s.LeaseExpired(lease=Seq(36)),
    k.CheckpointSigned(journal="1f" * 16, head=Seq(39), head_hash="0a" * 32, key="0b" * 32, signature="0c" * 64),
    k.PayloadRedacted(target=Seq(11), fields=("pattern",), by="ada", reason="a password"),
    k.ContentRedacted(digest=A, size=12, by="ada", reason="a key"),
    k.ContentsCollected(digests=(A, B), bytes=2400),
    k.SegmentArchived(
        first=Seq(1), last=Seq(20), last_hash="0d" * 32, file="1-20.segment.zst", digest=Checksum(C), size=4000
    ),
    k.SegmentRestored(first=Seq(1), last=Seq(20), file="1-20.segment.zst"),
    k.JournalAdopted(by="ada", head=Seq(40), known_head=Seq(90), reason="the disk died"),
    c.ConflictRebased(
        conflict=Seq(26),
        sides=c.ConflictSides(
            base=A,
            current=B,
            proposed=C,
            base_version=Seq(3),
            current_version=Seq(24),
            regions=(region(1, 2, 3, 4, 5, 6),),
        ),
        fits=True,
    ),
    c.ConflictExpired(conflict=Seq(26), cause="already_applied", message="the file holds it"),
    c.ReviewRequested(
        conflict=Seq(26),
        reviewer="careful",
        route="code",
        deadline=1_700_000_600_000,
        asked=c.ReviewUsage(model="big-1", prompt_hash="0f" * 32),
    ),
    c.ReviewAnswered(
        review=Seq(49),
        conflict=Seq(26),
        reviewer="careful",
        verdict="content",
        proposal=C,
        current=B,
        usage=c.ReviewUsage(
            model="big-1",
            prompt_hash="0f" * 32,
            input_tokens=900,
            output_tokens=120,
            cost_microusd=4200,
            took_ms=3100,
        ),
        reason="both are needed",
        ignored="late",
    ),
    c.ReviewFailed(review=Seq(49), conflict=Seq(26), code="reviewer_timeout", message="no answer in 60 s"),
    c.ReviewAccepted(review=Seq(49), conflict=Seq(26), by="policy", change=Seq(16), reason="it keeps both"),
    c.ReviewRejected(review=Seq(49), conflict=Seq(26), by="person:ada", reason="it drops a line"),
    s.NoticeShown(session=SESSION, paths=(s.NotifiedPath(PATH, Seq(12)),)),
    s.ApproverCodeRefused(pid=4242),
    s.ApproverSessionOpened(pid=4242),
    c.ApprovalShown(
        approval=Seq(29), digest=Checksum(A), start="0:0", next="1:0", whole=True, unkept=(PATH,), via=AGENT
    ),
    c.ElicitationAnswered(approval=Seq(29), question=Seq(30), via=AGENT, action="decline"),
    y.PolicyRejected(source="/state/policy.toml", digest=Checksum(A), message="line 3: defualt: unknown key"),
    y.WorkspacePolicyApproved(digest=B, by="ada"),
    s.AgentTokenRotated(name=AGENT, token_hash="0e" * 32, expires_at=1_800_000_000_000, former_until=1_700_000_000_000),
    c.GrantAdded(
        agent=AGENT,
        globs=("migrations/**",),
        actions=("create", "write"),
        expires_at=1_700_028_800_000,
        approval=Seq(30),
        by="person:ada",
        session=SESSION,
        others_work=True,
        rules=("migrations",),
    ),
    c.GrantRevoked(grant=Seq(60), by="person:ada", reason="the migration is done"),
    c.GrantExpired(grant=Seq(60), cause="session_ended"),
    f.AnswerShown(
        operation="await_change",
        status="still_waiting",
        ids=(Seq(26), Seq(24)),
        paths=(EscapedPath("src/a.py"),),
        more=3,
        seen=(SEEN,),
        tokens=40,
    ),
    s.BudgetExceeded(budget="tokens", period="day", most=9000, used=9120, resets_at=1_700_006_400_000),
    s.ApproverSessionClosed(cause="idle", pid=4242),
    f.FileTagged(path=PATH, added=("reviewed",), removed=("todo",)),
    r.CommandStarted(
        argv=("pytest", "-q"),
        cwd=WorkspacePath("src"),
        mode="in_place",
        environment=("CI=1",),
        timeout_s=120,
        rule="tests",
        approval=Seq(29),
        lease=Seq(28),
        reason="after the change",
    ),
    r.CommandEnded(
        command=Seq(60),
        status="done",
        exit_code=1,
        signal=9,
        output=A,
        output_bytes=9000,
        output_head=4096,
        group=Seq(61),
        changes=2,
        confined_by="landlock",
    ),
    c.ApprovalUsed(approval=Seq(29), tool="claude Bash"),
)

COMMAND = CommandLine(("make", "test"), WorkspacePath("."), "in_place", ("CI=1",))
ASKED: tuple[Event, ...] = (
    c.ApprovalRequested(
        provenance=Provenance(operation="run_command"),
        paths=(PathChange(path=WorkspacePath("."), before=None, after=None),),
        rule="run: a person decides",
        permissions=(PermissionCheck("run", WorkspacePath("."), directory=True, command=COMMAND),),
        expires_at=1_800_000_000_000,
    ),
    c.GrantAdded(
        agent=AGENT,
        globs=("**",),
        actions=("run",),
        expires_at=1_700_028_800_000,
        approval=Seq(30),
        by="person:ada",
        command=COMMAND,
    ),
)
"""As GROWN; a yes to a command."""

GROWN: tuple[Event, ...] = (
    c.ApprovalRequested(
        provenance=Provenance(operation="report_tool_call"),
        paths=(PathChange(path=PATH, before=A, after=C),),
        rule="edit: claude asks before it uses a tool of its own",
        permissions=(PermissionCheck("write", PATH),),
        expires_at=1_800_000_000_000,
        tool_call="toolu_1",
    ),
    f.FilesFound(entries=(FoundFile(path=PATH, signature=SIGNATURE, mode=0o644),), more=True),
    f.ExternalBatchOpened(trigger="hook", tool="claude Edit"),
    f.ExternalBatchClosed(group=Seq(34), changes=12, also=(Seq(33),)),
    f.ExternalFileChanged(
        path=PATH,
        before=A,
        after=C,
        signature=SIGNATURE,
        mode=0o644,
        kept=True,
        lease_holder=AGENT,
        lease=Seq(36),
        moved_from=OLD,
    ),
    f.ExternalFileCreated(
        path=PATH,
        after=C,
        signature=SIGNATURE,
        mode=0o644,
        kept=False,
        moved_from=OLD,
        lease_holder=AGENT,
        lease=Seq(36),
        parents=(WorkspacePath("src"),),
    ),
    f.ExternalFileRemoved(path=PATH, before=A, moved_to=OLD, lease_holder=AGENT, lease=Seq(36)),
    k.PayloadRedacted(target=Seq(11), fields=("pattern",), by="ada", reason="a password", rest_hash="0e" * 32),
)
"""Samples of events that got new fields with a default after they were first released; see SAMPLES for the old form."""

TELLING: tuple[Event, ...] = (
    f.ChangeRefused(
        operation="edit_file",
        paths=(EscapedPath("src/a.py"),),
        code="search_not_found",
        message="change 1 stands nowhere",
        details={"nearest": [{"line": 2, "score": 0.5}]},
        quoted=True,
    ),
    s.NoticeShown(session=SESSION, paths=(s.NotifiedPath(PATH, Seq(12), (LineRange(4, 5), LineRange(8, 7))),)),
)
"""As GROWN; what a notice showed in full, and lines that came between others."""

MOVED: tuple[Event, ...] = (
    c.ConflictRebased(
        conflict=Seq(26),
        sides=c.ConflictSides(
            base=A,
            current=B,
            proposed=C,
            base_version=Seq(3),
            current_version=Seq(24),
        ),
        path=PATH,
        moved_at=Seq(24),
    ),
)
"""As GROWN; conflicts whose file was moved."""

HINTED: tuple[Event, ...] = (
    c.ReviewFailed(
        review=Seq(49),
        conflict=Seq(26),
        code="over_budget",
        message="0.2 USD",
        hint="The caps stand in policy.toml.",
        usage=c.ReviewUsage(model="large-1", prompt_hash="ab" * 32, input_tokens=900, output_tokens=40, took_ms=1200),
    ),
)
