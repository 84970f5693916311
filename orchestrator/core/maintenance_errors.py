"""Errors of journal maintenance: archive, collect, back up, restore."""

from __future__ import annotations

from orchestrator.core.errors import CallerError, OperatorError


class ArchiveMissing(OperatorError):
    """Events were archived, and the file that holds them is not in its place."""

    code = "archive_missing"


class EventArchived(CallerError):
    """An event is in a file, and what is to be done with it takes it in the database."""

    code = "event_archived"


class StillNeeded(CallerError):
    """What was to be archived holds something that is not over yet."""

    code = "still_needed"


class NotLatestSegment(CallerError):
    """Segments come back newest first, so that the events in the database have no gap."""

    code = "not_latest_segment"


class JournalChanged(CallerError):
    """The journal went on in a way that undid the preparation, more often than it was tried."""

    code = "journal_changed"
    hint = "Try again when less goes on."


class BackupRefused(OperatorError):
    """The place for a backup can't be used."""

    code = "backup_refused"


class BackupInvalid(OperatorError):
    """What is to be restored is no whole backup."""

    code = "backup_invalid"
    hint = "Use another backup; this one was not finished, or was changed since."


class BackupOfAnotherJournal(OperatorError):
    """What is to be restored is of another workspace, or of this one's journal before it was begun anew."""

    code = "backup_of_another_journal"
    hint = "Name a backup of this workspace. If you do want the other history here, add --another-journal."
