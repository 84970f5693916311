"""The operations as methods of the Python client. Written by `make docs` from the catalogue."""

from collections.abc import Sequence
from typing import Literal

import orchestrator.api.administration
import orchestrator.api.briefing
import orchestrator.api.commands
import orchestrator.api.conflicts
import orchestrator.api.context
import orchestrator.api.directory_stats
import orchestrator.api.grants
import orchestrator.api.history
import orchestrator.api.journal_checks
import orchestrator.api.journal_operations
import orchestrator.api.native_edits
import orchestrator.api.parameters
import orchestrator.api.policies
import orchestrator.api.relations
import orchestrator.api.reported_calls
import orchestrator.api.results
import orchestrator.api.session_operations
import orchestrator.api.structure
import orchestrator.api.tags
import orchestrator.api.worktrees

class OperationMethods:
    """One method for each operation: its parameters as arguments, its result typed."""

    async def list_files(
        self,
        path: str = ".",
        globs: Sequence[str] = (),
        recursive: bool = False,
        max_depth: int | None = None,
        include_hidden: bool = False,
        limit: int = 200,
        cursor: str | None = None,
    ) -> orchestrator.api.results.Listing:
        """List a directory: kind, size and version of each entry, without ignored files.

        path: Directory; '.' is the workspace.
        globs: gitignore-style, also '*.{py,ts}'; '!x' excepts.
        recursive: Also below.
        max_depth: With recursive: levels down.
        include_hidden: Also dot files.
        limit: Most entries.
        cursor: From the last answer.
        """

    async def find_files(
        self,
        glob: str,
        path: str = ".",
        recursive: bool = True,
        tag: str | None = None,
        limit: int = 200,
        cursor: str | None = None,
    ) -> orchestrator.api.results.Listing:
        """Find files by a glob on their path.

        glob: gitignore-style, e.g. 'src/**/test_*.py'.
        path: Directory; '.' is the workspace.
        recursive: Also below.
        tag: With this tag.
        limit: Most entries.
        cursor: From the last answer.
        """

    async def file_info(self, path: str) -> orchestrator.api.results.FileFacts:
        """Facts about one path: size, kind, encoding, line ends, version, hash. A missing file is no error.

        path: Relative path, e.g. 'src/app.py'.
        """

    async def search_content(
        self,
        pattern: str,
        path: str = ".",
        globs: Sequence[str] = (),
        mode: Literal["exact", "regex", "fuzzy", "semantic"] = "exact",
        max_edits: int | None = None,
        multiline: bool = False,
        case_sensitive: bool = True,
        smart_case: bool = False,
        word: bool = False,
        invert: bool = False,
        count_only: bool = False,
        files_only: bool = False,
        context_lines: int = 2,
        max_results: int = 20,
        max_per_file: int | None = None,
        semantic_context: bool = False,
        at: str | int | None = None,
        cursor: str | None = None,
    ) -> orchestrator.api.results.SearchResult:
        """Find a text or regular expression in one file or below a directory; shows lines with context.

        pattern: Text within a line; see mode.
        path: File or directory; '.' is everything.
        globs: Below `path`: gitignore-style, also '*.{py,ts}'; '!x' excepts.
        mode: regex: RE2's; fuzzy: with typos; semantic: by meaning.
        max_edits: fuzzy: most typos; default 2.
        multiline: regex: also across lines; matches on a line are one hit.
        case_sensitive: false: 'a' finds 'A'.
        smart_case: Case counts only if `pattern` has a capital.
        word: Only whole words.
        invert: Lines without it.
        count_only: Only how many lines match.
        files_only: Only files, and how many lines of each.
        context_lines: Lines around each hit.
        max_results: Most hits.
        max_per_file: Most hits of one file.
        semantic_context: Also name the symbol around each hit.
        at: '@N': the files as they were.
        cursor: From the last answer.
        """

    async def read_file(
        self,
        path: str,
        start: int = 1,
        end: int | None = None,
        column: int | None = None,
        max_tokens: int = 8000,
        line_numbers: bool = True,
        at: str | int | None = None,
        delta: bool | None = None,
    ) -> orchestrator.api.results.FileText:
        """Read a text file, or lines of it, within a token budget. Ends with the call that reads on. Shows images, too.

        path: Relative path, e.g. 'src/app.py'.
        start: First line, 1-based; -100: the last 100.
        end: Last line, included; default: as far as max_tokens allows.
        column: Only line `start`, from this character on.
        max_tokens: Token budget.
        line_numbers: Number the lines.
        at: An earlier version, '@N'.
        delta: true: only what differs from what you saw.
        """

    async def read_lines(
        self,
        path: str,
        start: int = 1,
        end: int | None = None,
        context: int = 0,
        line_numbers: bool = True,
        at: str | int | None = None,
    ) -> orchestrator.api.results.FileText:
        """Read exactly these lines of a text file.

        path: Relative path, e.g. 'src/app.py'.
        start: First line, 1-based; -100: the last 100.
        end: Last line, included; default start + 199.
        context: Further lines before and after.
        line_numbers: Number the lines.
        at: An earlier version, '@N'.
        """

    async def edit_file(
        self,
        path: str,
        changes: Sequence[orchestrator.api.parameters.Replacement],
        base: str | int | None = None,
        supersedes: str | int | None = None,
        *,
        preview: bool = False,
        reason: str = "",
        request_id: str | None = None,
    ) -> orchestrator.api.results.ChangeAnswer:
        """Change passages of one file by search and replace, by line numbers or by symbol. A stale edit is rebased where
        that is safe, else it becomes a conflict.

        preview: Only show the outcome.
        reason: Why, in short.
        request_id: Your own id; repeats apply once.
        path: Relative path, e.g. 'src/app.py'.
        changes: All or none. Each is {search, replace}, {start, end, expect, replace} for lines by number, or
            {symbol, content}.
        base: Version to change, '@N' or 'sha256:…'; default: newest you saw. Subagents on one connection must send
            it.
        supersedes: '@N' of your conflict that this replaces.
        """

    async def apply_patch(
        self,
        patch: str,
        path: str | None = None,
        base: str | int | None = None,
        supersedes: str | int | None = None,
        *,
        preview: bool = False,
        reason: str = "",
        request_id: str | None = None,
    ) -> orchestrator.api.results.ChangeAnswer:
        """Apply a patch of one or several files, all or none; it can create, delete and rename.

        preview: Only show the outcome.
        reason: Why, in short.
        request_id: Your own id; repeats apply once.
        patch: A unified diff ('--- a/x', '+++ b/x', '@@ …'), a '*** Begin Patch', blocks of '<<<<<<< SEARCH',
            '=======', '>>>>>>> REPLACE' below the file's name, or a whole file in a ``` fence below its path. Copy
            context exactly, leave nothing out.
        path: The file, if the patch names none.
        base: Version to change, '@N' or 'sha256:…'; default: newest you saw. Subagents on one connection must send
            it.
        supersedes: '@N' of your conflict that this replaces.
        """

    async def write_file(
        self,
        path: str,
        content: str,
        mode: Literal["truncate", "append", "create"],
        base: str | int | None = None,
        supersedes: str | int | None = None,
        *,
        preview: bool = False,
        reason: str = "",
        request_id: str | None = None,
    ) -> orchestrator.api.results.ChangeAnswer:
        """Create a file, append to one, or replace one that this session has read whole.

        preview: Only show the outcome.
        reason: Why, in short.
        request_id: Your own id; repeats apply once.
        path: Relative path, e.g. 'src/app.py'.
        content: The whole new text, or what to append.
        mode: truncate: replace all (read it whole first); create: only if absent.
        base: Version to change, '@N' or 'sha256:…'; default: newest you saw. Subagents on one connection must send
            it.
        supersedes: '@N' of your conflict that this replaces.
        """

    async def move_file(
        self,
        source: str,
        destination: str,
        base: str | int | None = None,
        *,
        preview: bool = False,
        reason: str = "",
        request_id: str | None = None,
    ) -> orchestrator.api.results.ChangeAnswer:
        """Move or rename a file or a folder; never overwrites.

        preview: Only show the outcome.
        reason: Why, in short.
        request_id: Your own id; repeats apply once.
        source: Relative path, e.g. 'src/app.py'.
        destination: New path; must not exist.
        base: Version to change, '@N' or 'sha256:…'; default: newest you saw. Subagents on one connection must send
            it.
        """

    async def delete_file(
        self,
        path: str,
        base: str | int | None = None,
        *,
        preview: bool = False,
        reason: str = "",
        request_id: str | None = None,
    ) -> orchestrator.api.results.ChangeAnswer:
        """Delete a file, or a folder with all in it; revert brings it back.

        preview: Only show the outcome.
        reason: Why, in short.
        request_id: Your own id; repeats apply once.
        path: Relative path, e.g. 'src/app.py'.
        base: Version to change, '@N' or 'sha256:…'; default: newest you saw. Subagents on one connection must send
            it.
        """

    async def create_directory(
        self,
        path: str,
        *,
        preview: bool = False,
        reason: str = "",
        request_id: str | None = None,
    ) -> orchestrator.api.results.ChangeAnswer:
        """Make a directory, and those above it.

        preview: Only show the outcome.
        reason: Why, in short.
        request_id: Your own id; repeats apply once.
        path: Relative path, e.g. 'src/app.py'.
        """

    async def file_history(
        self,
        path: str,
        limit: int = 20,
        cursor: str | None = None,
    ) -> orchestrator.api.results.History:
        """The versions of a file, newest first: who, when, by which operation, why.

        path: Relative path, e.g. 'src/app.py'.
        limit: Most versions.
        cursor: From the last answer.
        """

    async def get_diff(
        self,
        path: str | None = None,
        from_: str | int = "@previous",
        to: str | int = "current",
        context_lines: int = 3,
        max_tokens: int | None = None,
        cursor: str | None = None,
    ) -> orchestrator.api.results.Diff:
        """The difference between two versions of a file; without path, of all files, paged.

        path: Default: all files that differ.
        from_: '@N', '@previous' or 'working'. Without path, '@previous' is when this session began.
        to: '@N', 'current' or 'working' (the disk).
        context_lines: Lines around each change.
        max_tokens: Token budget; default 20000, of long lines then the part that differs.
        cursor: Without path: from the last answer.
        """

    async def revert(
        self,
        change: str | int,
        *,
        preview: bool = False,
        reason: str = "",
        request_id: str | None = None,
    ) -> orchestrator.api.results.ChangeAnswer:
        """Undo one change, whenever it was made; later changes of others are kept.

        preview: Only show the outcome.
        reason: Why, in short.
        request_id: Your own id; repeats apply once.
        change: '@N' of a change or of an external change.
        """

    async def await_change(self, id: str | int, timeout_s: float = 25.0) -> orchestrator.api.results.ChangeAnswer:
        """Wait for the final answer of a change that waits for an approval or lies in conflict.

        id: '@N' of an approval, conflict or change.
        timeout_s: Seconds to wait.
        """

    async def get_briefing(self, max_tokens: int = 2000) -> orchestrator.api.briefing.Briefing:
        """Begin here: folders, first documents, who works on what, your open work.

        max_tokens: Token budget.
        """

    async def get_overview(
        self,
        path: str,
        changed_since: str | int | None = None,
        symbol: str | None = None,
        depth: int | None = None,
        skip: int = 0,
        max_tokens: int = 4000,
    ) -> orchestrator.api.structure.Overview:
        """Outline of a file: symbols with their lines, imports, what changed. Read on with read_symbol or read_file.

        path: Relative path, e.g. 'src/app.py'.
        changed_since: '@N': mark what changed after it.
        symbol: Only what this one holds.
        depth: Levels; default: as many as fit.
        skip: As `next` of the last answer says.
        max_tokens: Token budget.
        """

    async def read_symbol(
        self,
        path: str,
        symbol: str,
        context_lines: int = 0,
        max_tokens: int = 8000,
        line_numbers: bool = True,
    ) -> orchestrator.api.results.FileText:
        """Read one function, class, key or section by its name.

        path: Relative path, e.g. 'src/app.py'.
        symbol: Dotted name, e.g. 'Class.method'; or its last part.
        context_lines: Further lines before and after.
        max_tokens: Token budget.
        line_numbers: Number the lines.
        """

    async def read_enclosing(
        self,
        path: str,
        line: int,
        depth: int = 1,
        context_lines: int = 0,
        max_tokens: int = 8000,
        line_numbers: bool = True,
    ) -> orchestrator.api.results.FileText:
        """Read the whole function, class or section around a line.

        path: Relative path, e.g. 'src/app.py'.
        line: A line in it, 1-based.
        depth: 1: the innermost; 2: what is around that.
        context_lines: Further lines before and after.
        max_tokens: Token budget.
        line_numbers: Number the lines.
        """

    async def read_content(
        self,
        path: str,
        mode: Literal["lines", "semantic", "tail", "head", "enclosing"] = "lines",
        line: int | None = None,
        pattern: str | None = None,
        limit: int = 100,
        depth: int = 1,
        max_tokens: int = 8000,
        line_numbers: bool = True,
    ) -> orchestrator.api.results.FileText:
        """Read the lines from a line or text on, the symbol around it, or either end of a file.

        path: Relative path, e.g. 'src/app.py'.
        mode: lines: from there on; semantic: the function or class around it; enclosing: by depth.
        line: Where, 1-based; default for lines: 1.
        pattern: Instead of line: where this text occurs first.
        limit: Most lines; a function or class is shown whole.
        depth: enclosing: 1 is the innermost, 2 what is around that.
        max_tokens: Token budget.
        line_numbers: Number the lines.
        """

    async def related_files(
        self,
        path: str,
        direction: Literal["both", "imports", "imported_by"] = "both",
        depth: int = 1,
        skip: int = 0,
    ) -> orchestrator.api.relations.Related:
        """Files that a file imports, and files that import it: Python, JavaScript, TypeScript, Go, Rust, Java, C, C++.

        path: Relative path, e.g. 'src/app.py'.
        direction: Which side; both by default.
        depth: Imports of imports, so far.
        skip: As `next` of the last answer says.
        """

    async def find_references(
        self,
        symbol: str,
        path: str | None = None,
        globs: Sequence[str] = (),
        by: Literal["scope", "word"] = "scope",
        max_results: int = 50,
        cursor: str | None = None,
    ) -> orchestrator.api.relations.FoundReferences:
        """Where a name is used: lines with the word, then by syntax and scope where a grammar allows; it says which.

        symbol: Dotted name, e.g. 'Class.method'; or its last part.
        path: The file that defines it: then imports and scopes decide.
        globs: gitignore-style, also '*.{py,ts}'; '!x' excepts.
        by: word: also in comments, strings and other scopes.
        max_results: Most lines.
        cursor: From the last answer.
        """

    async def directory_stats(
        self,
        path: str = ".",
        globs: Sequence[str] = (),
    ) -> orchestrator.api.directory_stats.DirectoryNumbers:
        """How much is below a directory: files, bytes, by suffix, the largest and the newest; without ignored files.

        path: Directory; '.' is the workspace.
        globs: gitignore-style, also '*.{py,ts}'; '!x' excepts.
        """

    async def read_files(
        self,
        paths: Sequence[str],
        max_tokens: int = 8000,
        line_numbers: bool = True,
        delta: bool | None = None,
    ) -> orchestrator.api.context.FileTexts:
        """Read several text files within one token budget. Each has its text or its own error.

        paths: Relative paths.
        max_tokens: Token budget of all.
        line_numbers: Number the lines.
        delta: true: only what differs from what you saw.
        """

    async def get_excerpt(
        self,
        path: str,
        line: int | None = None,
        pattern: str | None = None,
        symbol: str | None = None,
        max_lines: int = 80,
        max_tokens: int = 2000,
        leave_out: Literal["end", "start", "middle"] = "end",
    ) -> orchestrator.api.context.Excerpt:
        """Lines of a file around a line, a text or a symbol, or its beginning; says what was left out.

        path: Relative path, e.g. 'src/app.py'.
        line: Around this line.
        pattern: Around the first line that holds this text.
        symbol: Of this function, class, key or section.
        max_lines: Most lines.
        max_tokens: Token budget.
        leave_out: Which part, where not all fits.
        """

    async def summarize_file(self, path: str, max_tokens: int = 400) -> orchestrator.api.context.Summary:
        """What a file is about: its leading documentation and key definitions, in a few lines.

        path: Relative path, e.g. 'src/app.py'.
        max_tokens: Token budget.
        """

    async def blame(
        self,
        path: str,
        start: int = 1,
        end: int | None = None,
        at: str | int | None = None,
    ) -> orchestrator.api.history.BlameAnswer:
        """Who brought each line of a file in: agent, session, task, approver and change, by ranges of lines.

        path: Relative path, e.g. 'src/app.py'.
        start: First line, 1-based.
        end: Last line, included; default: the file's end.
        at: An earlier version, '@N'.
        """

    async def changes_since(
        self,
        version: str | int,
        globs: Sequence[str] = (),
        limit: int = 100,
        skip: int = 0,
    ) -> orchestrator.api.history.Changes:
        """What changed after a version, oldest first: path, kind, who, how many lines. Go on with `head` of the answer,
        or with the call in `next`; nothing is left out or comes twice.

        version: '@N': what happened after it.
        globs: gitignore-style, also '*.{py,ts}'; '!x' excepts.
        limit: Most paths in one answer.
        skip: As `next` of the last answer says.
        """

    async def rollback(
        self,
        agent: str | None = None,
        session: str | None = None,
        task: str | int | None = None,
        globs: Sequence[str] = (),
        since: str | int | None = None,
        until: str | int | None = None,
        *,
        preview: bool = False,
        reason: str = "",
        request_id: str | None = None,
    ) -> orchestrator.api.history.RollbackAnswer:
        """Undo all changes of an agent, session, task, of some files or of a span of time, as one change. Later work of
        others is kept; where it overlaps, the file becomes a conflict.

        preview: Only show the outcome.
        reason: Why, in short.
        request_id: Your own id; repeats apply once.
        agent: Only changes of this agent; 'outside': only external changes.
        session: Only changes of this session.
        task: Only changes of this task ('@N').
        globs: Only these files, gitignore-style; accepts a part of a preview.
        since: Only what came after: '@N', '@start' or ISO 8601 (no zone: UTC).
        until: Only what came until then: '@N', '@start' or ISO 8601 (no zone: UTC).
        """

    async def tree_at(
        self,
        at: str | int = "current",
        contents: bool = False,
        limit: int = 5000,
        cursor: str | None = None,
    ) -> orchestrator.api.history.Tree:
        """The tracked files at any point: path, version, hash, mode, size.

        at: '@N', '@start' or 'current'.
        contents: Also the bytes of small files; a page is shorter then.
        limit: Most entries.
        cursor: From the last answer.
        """

    async def content_at(
        self,
        path: str,
        at: str | int,
        offset: int = 0,
        limit: int = 4194304,
    ) -> orchestrator.api.history.Content:
        """The bytes that a file had at any point, in pieces.

        path: Relative path, e.g. 'src/app.py'.
        at: '@N': the content that the file had then.
        offset: First byte, 0-based.
        limit: Most bytes in one answer.
        """

    async def session_status(self) -> orchestrator.api.session_operations.SessionInfo:
        """What this session read (stale reads marked), changed and works on, and what waits."""

    async def begin_task(
        self,
        title: str,
        request_id: str | None = None,
    ) -> orchestrator.api.session_operations.TaskAnswer:
        """Say what you work on; your changes carry the task until it ends.

        title: What you set out to do.
        request_id: Your own id; repeats apply once.
        """

    async def end_task(
        self,
        task: str | int,
        outcome: str = "",
        request_id: str | None = None,
    ) -> orchestrator.api.session_operations.TaskAnswer:
        """Say that a task is over, and what came of it.

        task: '@N' of the task.
        outcome: What came of it.
        request_id: Your own id; repeats apply once.
        """

    async def reserve_paths(
        self,
        globs: Sequence[str],
        ttl_s: int = 600,
        mode: Literal["exclusive", "shared"] = "exclusive",
        reason: str = "",
        request_id: str | None = None,
    ) -> orchestrator.api.session_operations.LeaseAnswer:
        """Say where you work for a while, so that others keep away: a lease on paths. Others' changes there are warned,
        refused, queued or merged, as policy says. Where others were first: status clash, no lease.

        globs: gitignore-style: 'src/api' and all in it, '/a.py' in the root only, '*.sql' at any depth, '!x' excepts.
        ttl_s: Seconds; the same call again renews it.
        mode: exclusive: you alone change them; shared: nobody may have them exclusively.
        reason: Why, in short.
        request_id: Your own id; repeats apply once.
        """

    async def release_paths(
        self,
        lease: str | int,
        request_id: str | None = None,
    ) -> orchestrator.api.session_operations.LeaseAnswer:
        """Give a lease back before its time is over.

        lease: '@N' of the lease.
        request_id: Your own id; repeats apply once.
        """

    async def stale_readers(self, path: str, limit: int = 20) -> orchestrator.api.session_operations.StaleReadersAnswer:
        """Sessions that read lines of a file which others have changed since, with the version and the lines that each
        one saw.

        path: Relative path, e.g. 'src/app.py'.
        limit: Most sessions in one answer.
        """

    async def run_command(
        self,
        argv: Sequence[str],
        cwd: str = ".",
        mode: Literal["in_place", "scratch"] | None = None,
        timeout_s: int = 120,
        env: Sequence[str] = (),
        background: bool = False,
        reason: str = "",
        request_id: str | None = None,
    ) -> orchestrator.api.commands.CommandAnswer:
        """Run a program, such as the tests; what it changes is reverted as one. status 'running': command_output reads
        on; 'waiting': after a person's yes, send the same call again.

        argv: Program and arguments; no shell.
        cwd: Directory; '.' is the workspace.
        mode: scratch: in a copy.
        timeout_s: Its time.
        env: 'NAME=value', as policy lets.
        background: Don't wait.
        reason: Why, in short.
        request_id: Your own id; repeats apply once.
        """

    async def command_output(
        self,
        command: str | int,
        start: int = 0,
        max_tokens: int = 4000,
    ) -> orchestrator.api.commands.CommandText:
        """Read what a command wrote, also while it runs.

        command: '@N'.
        start: First byte; -9: the last 9.
        max_tokens: Token budget.
        """

    async def list_commands(self, running: bool = False, limit: int = 20) -> orchestrator.api.commands.CommandList:
        """The commands that you ran.

        running: Only those that run.
        limit: Most entries.
        """

    async def stop_command(self, command: str | int) -> orchestrator.api.commands.CommandAnswer:
        """End a command that runs, with all that it started.

        command: '@N'.
        """

    async def list_conflicts(
        self,
        conflict: str | int | None = None,
        limit: int = 20,
        cursor: str | None = None,
        max_tokens: int = 20000,
        contents: bool = True,
    ) -> orchestrator.api.conflicts.Conflicts:
        """The changes that could not be applied and wait: base, current and proposed content of each.

        conflict: Only this one, '@N'.
        limit: Most conflicts in one answer.
        cursor: From the last answer.
        max_tokens: Token budget.
        contents: false: only what waits, without contents and diffs.
        """

    async def resolve_conflict(
        self,
        conflict: str | int,
        choice: Literal["current", "proposed", "content", "regions", "review"],
        content: str | None = None,
        regions: Sequence[Literal["current", "proposed"]] | None = None,
        on: str | int | None = None,
        review: str | int | None = None,
        reason: str = "",
        request_id: str | None = None,
        approver: str | None = None,
    ) -> orchestrator.api.results.ChangeAnswer:
        """Resolve a conflict: the current content, the proposed one, or another. For reviewers and approvers.

        conflict: '@N' of the conflict.
        choice: One side; or `content`; or a side for each region; or the reviewer's proposal.
        content: With choice 'content': the whole file, made from version `on`.
        regions: With choice 'regions': a side for each region, in order.
        on: The version you looked at: `current_version` of list_conflicts, '@0' where there is none. Required with
            'content' and 'regions', and with 'proposed' if other lines conflict now or the whole file would be
            replaced.
        review: With choice 'review': '@N' of the review.
        reason: Why, in short.
        request_id: Your own id; repeats apply once.
        approver: The approver code.
        """

    async def status(self) -> orchestrator.api.administration.StatusInfo:
        """What the daemon is doing."""

    async def cache_clear(self) -> orchestrator.api.administration.ClearedCaches:
        """Forget the outlines, overviews, summaries and line indexes that are remembered; says what they held."""

    async def stop(self) -> orchestrator.api.results.Done:
        """End the daemon."""

    async def approvals_list(
        self,
        limit: int = 50,
        cursor: str | None = None,
    ) -> orchestrator.api.administration.Approvals:
        """Changes that wait for a yes, without diffs. A reviewer is shown those that it may answer.

        limit: Most approvals in one answer.
        cursor: From the last answer.
        """

    async def approvals_show(
        self,
        approval: str | int,
        cursor: str | None = None,
    ) -> orchestrator.api.administration.ApprovalInfo:
        """One approval, whole, in pages.

        approval: '@N' of the request.
        cursor: From the last answer.
        """

    async def approve(
        self,
        approval: str | int,
        unseen: bool = False,
        for_session: bool = False,
        pattern: str | None = None,
        ttl_s: int | None = None,
        *,
        approver: str | None = None,
    ) -> orchestrator.api.results.ChangeAnswer:
        """Say yes: the daemon applies the change. For people, and reviewers where policy lets them.

        approver: The approver code.
        approval: '@N' of the request.
        unseen: Approve also what was not shown to you.
        for_session: The same acts, as long as its session lasts.
        pattern: The same acts on what this glob names; default: on its paths.
        ttl_s: For so many seconds; default 28800 (8 hours).
        """

    async def deny(
        self,
        approval: str | int,
        reason: str = "",
        *,
        approver: str | None = None,
    ) -> orchestrator.api.results.Done:
        """Say no: the change is dropped. For people, and reviewers where policy lets them.

        approver: The approver code.
        approval: '@N' of the request.
        reason: Why, in short.
        """

    async def agent_add(
        self,
        name: str,
        agent_class: Literal["cloud", "local", "review"] = "cloud",
        read_only: bool = False,
        expires_s: int = 0,
        *,
        approver: str | None = None,
    ) -> orchestrator.api.administration.AgentToken:
        """Make an agent and show its token once.

        approver: The approver code.
        read_only: Its token is for reading: it can change nothing.
        expires_s: So many seconds the token is good; 0: until it is revoked.
        """

    async def agent_rotate(
        self,
        name: str,
        grace_s: int = 0,
        expires_s: int = 0,
        *,
        approver: str | None = None,
    ) -> orchestrator.api.administration.AgentToken:
        """Give an agent a new token, and show it once.

        approver: The approver code.
        grace_s: So long the token before it is good, too.
        expires_s: So many seconds the token is good; 0: until it is revoked.
        """

    async def agent_revoke(self, name: str, *, approver: str | None = None) -> orchestrator.api.results.Done:
        """Take an agent's token away.

        approver: The approver code.
        """

    async def agent_list(self) -> orchestrator.api.administration.Agents:
        """The agents that may call."""

    async def approver_create(self) -> orchestrator.api.administration.ApproverCode:
        """Make the approver code, once."""

    async def approver_open(self, *, approver: str | None = None) -> orchestrator.api.results.Done:
        """Give the approver code once for this connection: its further calls need none.

        approver: The approver code.
        """

    async def approver_reset(
        self,
        new_code: str | None = None,
        *,
        approver: str | None = None,
    ) -> orchestrator.api.administration.ApproverCode:
        """Replace the approver code.

        approver: The approver code.
        new_code: One of your own; default: a random one.
        """

    async def grants_list(self) -> orchestrator.api.grants.GrantList:
        """What people let agents do without asking again."""

    async def grant_revoke(
        self,
        grant: str | int,
        reason: str = "",
        *,
        approver: str | None = None,
    ) -> orchestrator.api.results.Done:
        """Take a grant back: the agent is asked about again.

        approver: The approver code.
        grant: '@N' of the grant.
        reason: Why, in short.
        """

    async def policy_check(self, text: str, source: str = "policy.toml") -> orchestrator.api.policies.PolicyReport:
        """Check the text of a policy file."""

    async def policy_show(self, at: str | int | None = None) -> orchestrator.api.policies.PolicyInfo:
        """The rules that hold now, or held at an earlier time, each with its file.

        at: '@N': the rules that held after this event; default: now.
        """

    async def policy_explain(
        self,
        action: Literal["list", "read", "search", "write", "create", "delete", "move", "run", "revert", "review", "approve"],
        path: str,
        agent: str = "",
        argv: Sequence[str] = (),
        mode: Literal["in_place", "scratch"] | None = None,
    ) -> orchestrator.api.policies.Explanation:
        """Why an agent may do this to a path, or run this, or not: every rule about it, and the one that decides.

        path: Relative path, e.g. 'src/app.py'.
        agent: Who would do it, or class:NAME; without one, the caller.
        argv: With run: program and arguments; `path` is its directory.
        mode: Of the command; without one, as run_command chooses.
        """

    async def policy_simulate(
        self,
        text: str,
        source: str = "policy.toml",
        since: str | int | None = None,
        limit: int = 50,
    ) -> orchestrator.api.policies.SimulationAnswer:
        """Judge past events by another policy: what it would have answered otherwise.

        since: From here on: '@N', '@start' or ISO 8601 (no zone: UTC).
        limit: Most acts that are named.
        """

    async def policy_approve(self, digest: str, *, approver: str | None = None) -> orchestrator.api.results.Done:
        """Say yes to the workspace's own policy file, as `policy show` shows it.

        approver: The approver code.
        digest: Of the file as it was looked at.
        """

    async def policy_reload(self, *, approver: str | None = None) -> orchestrator.api.policies.PolicyReport:
        """Read the policy file again.

        approver: The approver code.
        """

    async def journal_query(
        self,
        path: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        task: str | int | None = None,
        kind: str | None = None,
        since: str | int | None = None,
        until: str | int | None = None,
        outcome: Literal["answered", "applied", "aborted", "diverged", "refused", "denied", "waiting", "granted", "expired", "conflict", "resolved", "superseded", "external"] | None = None,
        client_call_id: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> orchestrator.api.journal_operations.JournalPage:
        """Events of the journal, newest first: your own session's, more where policy says so; all for a person.

        path: Only events about this path.
        agent: Only this agent's; 'outside': only external changes.
        session: Only this session's.
        task: Only this task's, '@N'.
        kind: Only this kind, e.g. 'change_applied'.
        since: From here on: '@N', '@start' or ISO 8601 (no zone: UTC).
        until: Up to here, included: '@N', '@start' or ISO 8601 (no zone: UTC).
        outcome: Only events with this outcome.
        client_call_id: Only of the tool call to which the agent's client gave this id.
        limit: Most events in one answer.
        cursor: From the last answer.
        """

    async def journal_export(
        self,
        path: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        task: str | int | None = None,
        kind: str | None = None,
        since: str | int | None = None,
        until: str | int | None = None,
        outcome: Literal["answered", "applied", "aborted", "diverged", "refused", "denied", "waiting", "granted", "expired", "conflict", "resolved", "superseded", "external"] | None = None,
        client_call_id: str | None = None,
        after: str | int = "@0",
        limit: int = 500,
    ) -> orchestrator.api.journal_operations.ExportPage:
        """Events of the journal as JSON Lines, oldest first, page by page.

        path: Only events about this path.
        agent: Only this agent's; 'outside': only external changes.
        session: Only this session's.
        task: Only this task's, '@N'.
        kind: Only this kind, e.g. 'change_applied'.
        since: From here on: '@N', '@start' or ISO 8601 (no zone: UTC).
        until: Up to here, included: '@N', '@start' or ISO 8601 (no zone: UTC).
        outcome: Only events with this outcome.
        client_call_id: Only of the tool call to which the agent's client gave this id.
        after: '@N': only what came later; `after` of the last page.
        limit: Most events in one page.
        """

    async def journal_redact(
        self,
        event: str | int | None = None,
        fields: Sequence[str] = (),
        blob: str | int | None = None,
        path: str | None = None,
        reason: str = "",
        *,
        approver: str | None = None,
    ) -> orchestrator.api.journal_operations.Redacted:
        """Take the texts of one event, or one content, out of the journal for good.

        approver: The approver code.
        event: '@N' of the event whose texts are taken out.
        fields: Which of its fields, e.g. 'reason'; all that can be, without it.
        blob: Instead of an event: the content to remove, 'sha256:…' or '@N' of the version that has it.
        path: With blob '@N': of which file, where that version brought several, or is hidden.
        reason: Why, in short.
        """

    async def journal_backup(self, directory: str) -> orchestrator.api.journal_operations.BackupAnswer:
        """Copy the whole journal into a folder while it is in use, and verify the copy.

        directory: A new folder outside the workspace, by its absolute path.
        """

    async def journal_archive(
        self,
        before: str | int,
        *,
        approver: str | None = None,
    ) -> orchestrator.api.journal_operations.ArchiveAnswer:
        """Move old events from the database into compressed files with a checksum; they stay readable.

        approver: The approver code.
        before: '@N': every event before it leaves the database for a file.
        """

    async def journal_unarchive(
        self,
        file: str,
        *,
        approver: str | None = None,
    ) -> orchestrator.api.journal_operations.ArchiveAnswer:
        """Put the newest archived file's events back into the database.

        approver: The approver code.
        file: The name of the newest archived file.
        """

    async def journal_collect(
        self,
        grace_days: int = 30,
        dry_run: bool = False,
        *,
        approver: str | None = None,
    ) -> orchestrator.api.journal_operations.CollectAnswer:
        """Delete stored contents that no event outside the archive needs and that no event named for a while.

        approver: The approver code.
        grace_days: Days in which what an event named stays.
        dry_run: Only say what would go.
        """

    async def journal_checkpoint(self) -> orchestrator.api.journal_checks.SignedCheckpoint:
        """Sign where the journal ends now, to keep elsewhere."""

    async def journal_verify(self, checkpoint: str | None = None) -> orchestrator.api.journal_checks.VerifyAnswer:
        """Check the chain, the payloads and the blobs.

        checkpoint: The text of a checkpoint file, to compare with.
        """

    async def journal_rebuild(self, check: Literal[True] = True) -> orchestrator.api.journal_checks.RebuildAnswer:
        """Replay everything and compare."""

    async def workspace_check(self) -> orchestrator.api.journal_checks.WorkspaceReport:
        """Compare the disk with the journal."""

    async def replay_check(self) -> orchestrator.api.journal_checks.ReplayReport:
        """Rebuild every file from events and contents, and compare with the disk."""

    async def tag_file(
        self,
        path: str,
        tags: Sequence[str],
        remove: bool = False,
        request_id: str | None = None,
        approver: str | None = None,
    ) -> orchestrator.api.tags.TaggedFile:
        """Set tags on a file, or take them off. find_files finds them.

        path: Relative path, e.g. 'src/app.py'.
        tags: E.g. 'reviewed'.
        remove: Take them off.
        request_id: Your own id; repeats apply once.
        approver: The approver code.
        """

    async def list_tags(
        self,
        path: str = ".",
        tag: str | None = None,
        limit: int = 200,
        cursor: str | None = None,
    ) -> orchestrator.api.tags.TaggedFiles:
        """The files that tags were set on, with these.

        path: Directory; '.' is the workspace.
        tag: Only files with it.
        limit: Most entries.
        cursor: From the last answer.
        """

    async def native_before(
        self,
        client: str,
        tool: str,
        kind: Literal["read", "edit", "write", "patch", "command"],
        call: str,
        path: str = "",
        patch: str | None = None,
        content: str | None = None,
        changes: Sequence[orchestrator.api.native_edits.NativeReplacement] = (),
        exact: bool = False,
        command: str = "",
        outside: str = "",
    ) -> orchestrator.api.native_edits.NativePermit:
        """Ask whether an agent's own tool may act: by policy, others' leases, and what changed since it read.

        client: Whose hook it is, e.g. 'claude'.
        tool: The client's own name of the tool.
        kind: What the tool does.
        call: The client's own id of the call.
        path: The file; of a command, the folder where it runs.
        patch: Of a patch: its text, '*** Begin Patch' and so on.
        content: The whole new text, where the tool says it.
        changes: Its replacements, in order.
        exact: The tool finds only what its replacements quote exactly.
        command: Of a command: what the shell gets.
        outside: Of a command that runs outside of the workspace: where.
        """

    async def native_after(
        self,
        client: str,
        tool: str,
        kind: Literal["read", "edit", "write", "patch", "command"],
        call: str,
        path: str = "",
        patch: str | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> orchestrator.api.native_edits.NativeNote:
        """Tell what an agent's own tool did: what it read and changed is recorded as the agent's.

        client: Whose hook it is, e.g. 'claude'.
        tool: The client's own name of the tool.
        kind: What the tool does.
        call: The client's own id of the call.
        path: The file; of a command, the folder where it runs.
        patch: Of a patch: its text, '*** Begin Patch' and so on.
        start: Of a read: its first line.
        end: Of a read: its last line; none: to the end.
        """

    async def report_tool_call(
        self,
        client: str,
        tool: str,
        call: str,
        state: Literal["asks", "withdraws", "begins", "ends"],
        kind: Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"] = "other",
        paths: Sequence[str] = (),
        edits: Sequence[orchestrator.api.reported_calls.ReportedEdit] = (),
        reason: str = "",
    ) -> orchestrator.api.reported_calls.ToolCallNote:
        """Report a call of an agent's own tool: a person is asked about it, and what it is found to have changed is its.

        client: Which agent it is, e.g. 'claude'.
        tool: What the agent calls it.
        call: The agent's own id of the call.
        state: asks: for a person's yes.
        paths: The files that it names.
        edits: What it changes.
        reason: Why, in short.
        """

    async def open_worktree(self) -> orchestrator.api.worktrees.Worktree:
        """Copy the workspace into a folder of its own, for an agent that works there by itself."""

    async def close_worktree(
        self,
        worktree: str,
        drop: bool = False,
        reason: str = "",
    ) -> orchestrator.api.worktrees.WorktreeAnswer:
        """Bring back what was made of a worktree, as one change by policy, merging and conflicts; then remove it.

        worktree: As open_worktree named it.
        drop: Bring nothing back.
        reason: Why, in short.
        """
