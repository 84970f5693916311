"""The engine: every call comes through here, once, and every refusal is noted before it is answered."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import anyio

from orchestrator.api import administration as admin
from orchestrator.api import history, journal_operations, policies, session_operations
from orchestrator.api import operations as o
from orchestrator.api.briefing import GET_BRIEFING
from orchestrator.api.commands import COMMAND_OUTPUT, LIST_COMMANDS, RUN_COMMAND, STOP_COMMAND
from orchestrator.api.conflicts import LIST_CONFLICTS, RESOLVE_CONFLICT
from orchestrator.api.context import GET_EXCERPT, READ_FILES, SUMMARIZE_FILE
from orchestrator.api.directory_stats import DIRECTORY_STATS
from orchestrator.api.framing import FeedEvent, Subscribe
from orchestrator.api.grants import GRANT_REVOKE, GRANTS_LIST
from orchestrator.api.journal_checks import (
    JOURNAL_CHECKPOINT,
    JOURNAL_REBUILD,
    JOURNAL_VERIFY,
    REPLAY_CHECK,
    WORKSPACE_CHECK,
)
from orchestrator.api.journal_operations import JOURNAL_QUERY
from orchestrator.api.native_edits import NATIVE_AFTER, NATIVE_BEFORE
from orchestrator.api.relations import FIND_REFERENCES, RELATED_FILES
from orchestrator.api.reported_calls import REPORT_TOOL_CALL
from orchestrator.api.session_operations import BEGIN_TASK, END_TASK, SESSION_STATUS
from orchestrator.api.structure import GET_OVERVIEW, READ_CONTENT, READ_ENCLOSING, READ_SYMBOL
from orchestrator.api.tags import LIST_TAGS, TAG_FILE
from orchestrator.api.worktrees import CLOSE_WORKTREE, OPEN_WORKTREE
from orchestrator.core.errors import ApproverError, CallerError, DiskFull, OrchestratorError, WritesStopped
from orchestrator.core.ids import Seq
from orchestrator.core.system_errors import refusal_in
from orchestrator.engine.administration import Administration, DaemonFacts
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.briefing import Briefer
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.calls import CallService, handled_by, handlers_of
from orchestrator.engine.changes.approvals import ApprovalService
from orchestrator.engine.changes.change_answers import Answers
from orchestrator.engine.changes.effects import Effects
from orchestrator.engine.changes.elicitations import Elicitations
from orchestrator.engine.changes.facts import RenameTracker
from orchestrator.engine.changes.pipeline import ChangePipeline
from orchestrator.engine.changes.recovery import Recovery
from orchestrator.engine.changes.undo import Undoer
from orchestrator.engine.changes.write_operations import Writer
from orchestrator.engine.commands.command_service import CommandService
from orchestrator.engine.commands.execution import Executor
from orchestrator.engine.commands.scratch import ScratchResults
from orchestrator.engine.commands.worktrees import WorktreeService
from orchestrator.engine.conflicts.conflict_views import ConflictViews
from orchestrator.engine.conflicts.open_conflicts import Rebaser
from orchestrator.engine.conflicts.proposals import Proposals
from orchestrator.engine.conflicts.resolution import ConflictResolver
from orchestrator.engine.conflicts.review_queue import Reviewing
from orchestrator.engine.external.batch_import import BatchImporter
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.external.watch import Watching
from orchestrator.engine.grants import GrantService
from orchestrator.engine.leases import Leases
from orchestrator.engine.names import Names
from orchestrator.engine.native_calls import NativeCalls
from orchestrator.engine.native_commands import NativeCommands
from orchestrator.engine.native_permits import NativePermits
from orchestrator.engine.native_records import NativeRecords
from orchestrator.engine.policies import PolicyService
from orchestrator.engine.policy_files import PolicyKeeper
from orchestrator.engine.reads.blame import Attributions, Blamer
from orchestrator.engine.reads.excerpts import Excerpter
from orchestrator.engine.reads.file_facts import FactReader
from orchestrator.engine.reads.file_reads import Reader
from orchestrator.engine.reads.file_tree import FileTrees
from orchestrator.engine.reads.history import Historian
from orchestrator.engine.reads.listing import DirectoryCounter, Lister
from orchestrator.engine.reads.many_files import ManyReader
from orchestrator.engine.reads.overview import Overviewer
from orchestrator.engine.reads.read_regions import ReadSets
from orchestrator.engine.reads.reference_search import ReferenceFinder
from orchestrator.engine.reads.relations import Relations
from orchestrator.engine.reads.search import Searcher
from orchestrator.engine.reads.stale_read_notices import StaleReadNotifier
from orchestrator.engine.reads.summaries import Summarizer
from orchestrator.engine.reads.symbol_reads import ContentReader, SymbolReader
from orchestrator.engine.reads.time_travel import TimeTravel
from orchestrator.engine.record.audit import Auditor
from orchestrator.engine.record.folded_state import Snapshotter, StateCheck
from orchestrator.engine.record.maintenance import Maintenance
from orchestrator.engine.record.subscriptions import Follower
from orchestrator.engine.record.verification import CheckpointSigner, Verification
from orchestrator.engine.reported_calls import ReportedCalls
from orchestrator.engine.semantic.indexer import SemanticIndexer
from orchestrator.engine.semantic.search import SemanticSearcher
from orchestrator.engine.services import Services
from orchestrator.engine.sessions import SessionLifecycle, SessionService
from orchestrator.engine.shown import ShownAnswers
from orchestrator.engine.tags import TagService
from orchestrator.logs import logger
from orchestrator.ports.commands import CommandRunner, ScratchTrees
from orchestrator.ports.journal import JournalMaintenance
from orchestrator.ports.machine import Signer
from orchestrator.ports.reviewers import Checker, Reviewer
from orchestrator.ports.semantic import SemanticIndex
from orchestrator.ports.summaries import SummaryPlugins
from orchestrator.ports.workspace import Watcher


class Engine:
    """All operations over one set of services."""

    def __init__(  # noqa: PLR0913, PLR0915  # what the composition root makes, once
        self,
        services: Services,
        *,
        facts: DaemonFacts,
        signer: Signer,
        keeper: JournalMaintenance,
        reviewers: Mapping[str, Reviewer],
        semantic: SemanticIndex,
        runner: CommandRunner,
        scratch: ScratchTrees,
        environment: Mapping[str, str],
        checker: Checker,
        summaries: SummaryPlugins,
        watcher: Watcher | None = None,
    ) -> None:
        self._s = services
        journal, workspace, state = services.journal, services.workspace, services.state
        notes, contents = services.notes, services.contents
        observer, effects = Observer(services), Effects(services)
        names = Names(workspace, services.ignore, state.registry, watcher)
        self._observer, self._effects = observer, effects
        self.limits, self.root = services.limits, workspace.root
        self._leases, sets = Leases(services), ReadSets(services)
        answers = Answers(services)
        self._gate = gate = ApproverGate(services.clock, services.entropy, notes, state.identities)
        renames = RenameTracker(services)
        pipeline = ChangePipeline(services, observer, effects, answers, self._leases)
        self._recovery = Recovery(services, observer)
        self._importer = importer = BatchImporter(services, observer, names)
        self.looked_at_all = importer.kept.wait
        """Wait until the background is done with the files that the start met."""
        self._watching = Watching(observer, importer, names, watcher)
        results = ScratchResults(services, pipeline)
        executor = Executor(
            services,
            observer,
            self._watching,
            self._leases,
            runner,
            scratch,
            results,
            environment,
        )
        worktrees = WorktreeService(services, self._watching, scratch, results)
        self._commands = commands = CommandService(services, executor)
        self._grants = GrantService(services, gate)
        self._approvals = ApprovalService(services, pipeline, gate, self._grants)
        self.elicitations = Elicitations(services, self._approvals.inbox, answers, signer)
        proposals, attributions = Proposals(services, pipeline, checker), Attributions(journal, contents)
        rebaser = Rebaser(services, observer, renames)
        conflicts = ConflictViews(services, answers.diffs, rebaser, attributions)
        self._reviewing = Reviewing(services, rebaser, proposals, conflicts, reviewers)
        self.stale_read_notifier = StaleReadNotifier(services, observer, sets)
        self.lifecycle = SessionLifecycle(notes, state.sessions, self.stale_read_notifier, gate)
        self._sealer = CheckpointSigner(journal, notes, signer)
        self._verification = Verification(journal, effects.stop)
        self._snapshots = Snapshotter(journal, state, services.step)
        self._follower = Follower(services, sets)
        self._log = logger("engine")
        reader, historian = Reader(services, observer), Historian(services, observer, importer)
        self.facts = FactReader(services, observer, reader.large)
        trees = FileTrees(names, services.permissions, services.access)
        sessions = SessionService(services, answers, self._leases, self.stale_read_notifier, reader, trees)
        searcher = Searcher(services, observer, names, reader.large)
        self._indexer = SemanticIndexer(services, semantic)
        by_meaning = SemanticSearcher(services, observer, names, searcher, self._indexer)
        symbols, excerpter = SymbolReader(services, observer, reader), Excerpter(services, observer, reader.large)
        briefer = Briefer(services, trees, sessions, self._leases, excerpter)
        lister, travel = Lister(services, self.facts, names), TimeTravel(services)
        summarizer = Summarizer(services, observer, reader, summaries)
        writer, undoer = Writer(services, pipeline, renames), Undoer(services, pipeline)
        resolver = ConflictResolver(services, answers.diffs, gate, proposals, rebaser)
        auditor = Auditor(services)
        upkeep = Maintenance(
            services,
            gate,
            keeper,
            state_dir=facts.state_dir,
            keep_snapshot=self._snapshots.keep,
            forget_copies=scratch.forget,
        )
        checks = StateCheck(journal, state, workspace, services.locks, importer)
        self._policies = policy_keeper = PolicyKeeper(services, facts.policies, facts.loaded)
        administration = Administration(
            services,
            facts,
            effects=effects,
            gate=gate,
            leases=self._leases,
            importer=importer,
            policies=policy_keeper,
            recovery=self._recovery,
            watching=self._watching,
            verification=self._verification,
            indexer=self._indexer,
            expire=self._approvals.expire,
        )
        policy, tagging = PolicyService(services, policy_keeper, gate), TagService(services, observer, gate)
        native_calls = NativeCalls(services, observer.claims, self.lifecycle)
        permits = NativePermits(
            services,
            observer,
            native_calls,
            commands=NativeCommands(services, self._watching, native_calls),
            leases=self._leases,
            writer=writer,
            answers=answers,
        )
        records = NativeRecords(services, observer, self._watching, native_calls)
        self._reported = reported = ReportedCalls(services, observer, self._watching, records)
        handlers = handlers_of(
            handled_by(NATIVE_BEFORE, permits.native_before),
            handled_by(NATIVE_AFTER, records.native_after),
            handled_by(OPEN_WORKTREE, worktrees.open_worktree),
            handled_by(CLOSE_WORKTREE, worktrees.close_worktree),
            handled_by(REPORT_TOOL_CALL, reported.report_tool_call),
            handled_by(o.LIST_FILES, lister.list_files),
            handled_by(o.FIND_FILES, lister.find_files),
            handled_by(DIRECTORY_STATS, DirectoryCounter(services, names).directory_stats),
            handled_by(o.FILE_INFO, self.facts.file_info),
            handled_by(o.SEARCH_CONTENT, by_meaning.search_content),
            handled_by(o.READ_FILE, summarizer.read_file),
            handled_by(o.READ_LINES, reader.read_lines),
            handled_by(GET_OVERVIEW, Overviewer(services, observer, reader.large).get_overview),
            handled_by(RELATED_FILES, Relations(services, observer, searcher, names).related_files),
            handled_by(FIND_REFERENCES, ReferenceFinder(services, observer, searcher).find_references),
            handled_by(READ_SYMBOL, symbols.read_symbol),
            handled_by(READ_ENCLOSING, symbols.read_enclosing),
            handled_by(READ_CONTENT, ContentReader(reader, symbols, searcher).read_content),
            handled_by(READ_FILES, ManyReader(services, summarizer, self.facts, self._note_refusal).read_files),
            handled_by(GET_EXCERPT, excerpter.get_excerpt),
            handled_by(SUMMARIZE_FILE, summarizer.summarize_file),
            handled_by(o.EDIT_FILE, writer.edit_file),
            handled_by(o.APPLY_PATCH, writer.apply_patch),
            handled_by(o.WRITE_FILE, writer.write_file),
            handled_by(o.MOVE_FILE, writer.move_file),
            handled_by(o.DELETE_FILE, writer.delete_file),
            handled_by(o.CREATE_DIRECTORY, writer.create_directory),
            handled_by(o.FILE_HISTORY, historian.file_history),
            handled_by(o.GET_DIFF, historian.get_diff),
            handled_by(o.REVERT, undoer.revert),
            handled_by(history.ROLLBACK, undoer.rollback),
            handled_by(GET_BRIEFING, briefer.get_briefing),
            handled_by(SESSION_STATUS, sessions.session_status),
            handled_by(BEGIN_TASK, sessions.begin_task),
            handled_by(END_TASK, sessions.end_task),
            handled_by(RUN_COMMAND, commands.run_command),
            handled_by(COMMAND_OUTPUT, commands.command_output),
            handled_by(LIST_COMMANDS, commands.list_commands),
            handled_by(STOP_COMMAND, commands.stop_command),
            handled_by(LIST_CONFLICTS, conflicts.list_conflicts),
            handled_by(RESOLVE_CONFLICT, resolver.resolve_conflict),
            handled_by(o.AWAIT_CHANGE, sessions.await_change),
            handled_by(JOURNAL_QUERY, auditor.journal_query),
            handled_by(history.BLAME, Blamer(services, observer, attributions).blame),
            handled_by(history.CHANGES_SINCE, travel.changes_since),
            handled_by(history.TREE_AT, travel.tree_at),
            handled_by(history.CONTENT_AT, travel.content_at),
            handled_by(REPLAY_CHECK, checks.replay_check),
            handled_by(TAG_FILE, tagging.tag_file),
            handled_by(LIST_TAGS, tagging.list_tags),
            handled_by(admin.STATUS, administration.status),
            handled_by(admin.CACHE_CLEAR, services.caches.cache_clear),
            handled_by(admin.APPROVALS_LIST, self._approvals.inbox.approvals_list),
            handled_by(admin.APPROVALS_SHOW, self._approvals.inbox.approvals_show),
            handled_by(admin.APPROVE, self._approvals.approve),
            handled_by(admin.DENY, self._approvals.deny),
            handled_by(admin.AGENT_ADD, administration.agent_add),
            handled_by(admin.AGENT_ROTATE, administration.agent_rotate),
            handled_by(admin.AGENT_REVOKE, administration.agent_revoke),
            handled_by(admin.AGENT_LIST, administration.agent_list),
            handled_by(admin.APPROVER_CREATE, administration.approver_create),
            handled_by(admin.APPROVER_OPEN, administration.approver_open),
            handled_by(admin.APPROVER_RESET, administration.approver_reset),
            handled_by(GRANTS_LIST, self._grants.grants_list),
            handled_by(GRANT_REVOKE, self._grants.grant_revoke),
            handled_by(policies.POLICY_CHECK, policy.policy_check),
            handled_by(policies.POLICY_SHOW, policy.policy_show),
            handled_by(policies.POLICY_EXPLAIN, policy.policy_explain),
            handled_by(policies.POLICY_SIMULATE, policy.policy_simulate),
            handled_by(policies.POLICY_RELOAD, policy.policy_reload),
            handled_by(policies.POLICY_APPROVE, policy.policy_approve),
            handled_by(JOURNAL_VERIFY, self._verification.journal_verify),
            handled_by(JOURNAL_REBUILD, checks.journal_rebuild),
            handled_by(WORKSPACE_CHECK, checks.workspace_check),
            handled_by(admin.STOP, administration.stop),
            handled_by(session_operations.RESERVE_PATHS, self._leases.reserve_paths),
            handled_by(session_operations.RELEASE_PATHS, self._leases.release_paths),
            handled_by(journal_operations.JOURNAL_EXPORT, auditor.journal_export),
            handled_by(JOURNAL_CHECKPOINT, self._sealer.journal_checkpoint),
            handled_by(journal_operations.JOURNAL_REDACT, upkeep.journal_redact),
            handled_by(journal_operations.JOURNAL_BACKUP, upkeep.journal_backup),
            handled_by(journal_operations.JOURNAL_ARCHIVE, upkeep.journal_archive),
            handled_by(journal_operations.JOURNAL_UNARCHIVE, upkeep.journal_unarchive),
            handled_by(journal_operations.JOURNAL_COLLECT, upkeep.journal_collect),
            handled_by(session_operations.STALE_READERS, self.stale_read_notifier.stale_readers),
        )
        self.calls = CallService(
            services,
            handlers,
            answers=answers,
            sessions=sessions,
            leases=self._leases,
            commands=commands,
            lifecycle=self.lifecycle,
            renames=renames,
            policies=policy_keeper,
            shown=ShownAnswers(services, self.lifecycle),
        )

    async def _note_refusal(self, caller: Caller, call: Call, error: CallerError | ApproverError) -> None:
        """Of one file of a call that goes on with others."""
        await self.calls.note_refusal(caller, call, error)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Engine]:
        """Recover, scan, then serve; background work ends before this does."""
        async with anyio.create_task_group() as tasks:
            self._s.background.tasks = tasks
            await self._policies.record()
            await self._snapshots.begin()
            await self._watching.start()
            try:
                await self._recover_and_scan()
            except Exception as error:
                refused = refusal_in(error, "the start")
                if not isinstance(refused, DiskFull | WritesStopped):
                    raise
                self._serve_reads_only(refused)
            self._s.background.start(self._s.redaction.load)
            keeping = anyio.CancelScope()
            self._s.background.start(partial(self._keep, keeping))
            await self._sealer.begin()
            async with anyio.create_task_group() as clocks:
                clocks.start_soon(self._expire)
                clocks.start_soon(self._reviewing.run)
                clocks.start_soon(self._watching.run)
                clocks.start_soon(self._sealer.run)
                clocks.start_soon(self._verification.run)
                clocks.start_soon(self._snapshots.run)
                clocks.start_soon(self._indexer.run)
                clocks.start_soon(self._reported.run)
                await clocks.start(self._commands.run)
                yield self
                keeping.cancel()
                clocks.cancel_scope.cancel()
        await self._sealer.end()
        self._s.background.tasks = None
        await self._snapshots.keep()

    async def _keep(self, scope: anyio.CancelScope) -> None:
        """Of a million files this takes minutes; a stop does not wait, and the next start goes on with it."""
        with scope:
            await self._importer.keep()

    async def _recover_and_scan(self) -> None:
        """Note what happened while no daemon ran, and close what the last one left open."""
        await self.lifecycle.close_left()
        await self._recovery.run()
        await self._commands.executor.close_left()
        await self._leases.expire()
        await self._grants.expire()
        await self._importer.scan()
        await self._commands.executor.release_left()
        await self._approvals.resume()
        await self._reviewing.resume()

    def _serve_reads_only(self, error: OrchestratorError) -> None:
        """A start that the disk cut short: reads are answered; the next start does the rest."""
        self._effects.stop(f"the start could not be finished: {error.message}")
        self._observer.scanned = True
        self._log.error("only reads are served", error=error.message, hint=error.hint)

    async def _expire(self) -> None:
        while True:
            moved = self._s.state_changes.next()
            try:
                ends = (await self._approvals.expire(), await self._leases.expire(), await self._grants.expire())
                due = min(filter(None, ends), default=None)
                await self._gate.expire()
            except OrchestratorError as error:
                self._log.error("what has an end could not be checked for it", error=error.message)
                due = None
            await self._s.state_changes.until(moved, due)

    # --- what the transports ask -----------------------------------------------------

    def ticks_us(self) -> int:
        """The clock that calls are measured by."""
        return self._s.clock.ticks_us()

    @property
    def in_memory_bytes(self) -> int:
        """The size from which on a file is read by pieces."""
        return self._s.permissions.policy.limits.in_memory_bytes

    def known_files(self) -> int:
        """How many files the registry has."""
        return len(self._s.state.registry)

    async def follow(self, caller: Caller, params: Subscribe) -> tuple[Seq, AsyncGenerator[FeedEvent, None]]:
        """Where a feed starts, and its events from there on, without end. Raises as `Follower.follow`."""
        return await self._follower.follow(caller, params, partial(self.calls.check_authorized, caller))
