"""What happened before a command of docs/operations.md: work of others, and every damage that it tells how to mend."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
from collections.abc import Callable

from orchestrator.clients.running_daemon import ENDING_TIMEOUT_S, readable
from orchestrator.journal.database_file import migrations
from tests.daemon.damage import alter, append_of_the_future
from tests.docs.guide import Operator

CART = """VAT = 0.20


def net(price, count):
    return price * count


def gross(price, count):
    return net(price, count) * (1 + VAT)
"""
LARGE = "one line of many\n" * 30_000
"""A content that is kept in a file of its own."""


# --- what others did -----------------------------------------------------------------------


def a_repository(operator: Operator) -> None:
    for name, content in {"cart.py": CART, "notes.md": "# Shop\n", "numbers.txt": LARGE, ".env": "A=1\n"}.items():
        (operator.shop / name).write_text(content)
    operator.sh("git config --global user.name Op; git config --global user.email op@example.org")
    operator.sh("git init -q -b main; git add .; git commit -qm Start")
    operator.sh("git checkout -qb rates; echo '# Rates' >> notes.md; echo 'RATES = {}' > tax.py")
    operator.sh("git add .; git commit -qm Rates; git checkout -q main")


def agents_at_work(operator: Operator) -> None:
    """Two changes, a refusal, and a switch of branches that the watcher has noted."""
    edit(operator, "alice", "cart.py", "VAT = 0.20", "VAT = 0.19", "the German rate")
    edit(operator, "bob", "cart.py", "price * count", "round(price * count, 2)", "whole cents")
    operator.sh("! orchestrator open .env --agent bob")
    operator.sh('until orchestrator --json status | grep -q \'"baseline":"done"\'; do :; done')
    operator.sh("git checkout -q rates")
    operator.sh("until orchestrator --json since @1 --glob tax.py | grep -q tax.py; do :; done")
    operator.sh("until orchestrator --json journal query --kind external_batch_closed | grep -q changes; do :; done")


def a_lease(operator: Operator) -> None:
    operator.sh("orchestrator lease reserve 'src/**' --ttl 3600 --agent alice")


def work_after_the_backup(operator: Operator) -> None:
    edit(operator, "alice", "cart.py", "(1 + VAT)", "(1.0 + VAT)", "a float")


def replaced(operator: Operator) -> None:
    for number in range(3):
        write = f"orchestrator write numbers.txt --agent bob --base {at(operator, 'numbers.txt')}"
        operator.sh(f"seq {number} 1000 | {write}")


def a_key(operator: Operator) -> None:
    edit(operator, "alice", "notes.md", "# Shop", "# Shop\nKEY=s3cret", "the key is s3cret")
    edit(operator, "bob", "notes.md", "KEY=s3cret", "The key is in the till.", "no keys in here")


def edit(operator: Operator, agent: str, path: str, search: str, replace: str, reason: str) -> None:
    operator.sh(
        f"orchestrator edit {path} --agent {agent} --base {at(operator, path)} "
        f"--search {search!r} --replace $'{replace.encode('unicode_escape').decode()}' --reason {reason!r}"
    )


def at(operator: Operator, path: str) -> str:
    """A file's version now."""
    return str(json.loads(operator.sh(f"orchestrator --json log {path}"))["versions"][0]["version_id"])


# --- accidents -----------------------------------------------------------------------------


def killed(operator: Operator) -> None:
    """As the kernel does when memory is short."""
    process = os.pidfd_open(pid(operator))
    signal.pidfd_send_signal(process, signal.SIGKILL)
    assert readable(process, ENDING_TIMEOUT_S), "the process does not end"
    os.close(process)


def power_lost(operator: Operator) -> None:
    """A second crash in a row: the log, which still held what was written before the first, is empty."""
    edit(operator, "bob", "cart.py", "VAT = 0.19", "VAT = 0.21", "the Dutch rate")
    killed(operator)
    os.truncate(operator.state_dir / "journal.db-wal", 32)


def row_altered(operator: Operator) -> None:
    operator.sh("orchestrator stop")
    alter("UPDATE events SET payload = x'7b7d' WHERE seq = (SELECT max(seq) - 5 FROM events)")(operator.state_dir)


def contents_deleted(operator: Operator) -> None:
    shutil.rmtree(operator.state_dir / "blobs")
    (operator.state_dir / "blobs").mkdir(mode=0o700)


def newer_schema(operator: Operator) -> None:
    operator.sh("orchestrator stop")
    alter("PRAGMA user_version = 99")(operator.state_dir)


def newer_event(operator: Operator) -> None:
    alter(f"PRAGMA user_version = {len(migrations())}")(operator.state_dir)
    append_of_the_future(operator.state_dir)


def another_checkpoint(operator: Operator) -> None:
    operator.sh("mkdir ~/blog; cd ~/blog; orchestrator up; orchestrator journal checkpoint > ~/blog.checkpoint")
    operator.sh("cd ~/blog; orchestrator stop")


def disk_fails(operator: Operator) -> None:
    """Met by the first call that is to be noted: asking for the status is not."""
    limit(operator, 0)
    operator.sh("orchestrator open cart.py --agent alice")


def disk_mended(operator: Operator) -> None:
    limit(operator, resource.RLIM_INFINITY)


def limit(operator: Operator, size: int) -> None:
    """How far a file of the daemon may grow: a write beyond it fails."""
    resource.prlimit(pid(operator), resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def pid(operator: Operator) -> int:
    """The running daemon's process."""
    known = operator.state_dir.with_suffix(".location").read_text()
    return int(json.loads(known)["pid"])


GIVEN: dict[str, Callable[[Operator], None]] = {
    "a repository": a_repository,
    "agents at work, and a branch switched": agents_at_work,
    "a lease is held": a_lease,
    "work after the backup": work_after_the_backup,
    "a content that later changes replaced": replaced,
    "a key in a file, for a while": a_key,
    "the daemon is killed": killed,
    "the machine loses power, and with it the end of the log": power_lost,
    "a row of the journal is altered": row_altered,
    "the contents are deleted": contents_deleted,
    "a newer program changed the schema": newer_schema,
    "the schema is as before, but the newer program wrote an event": newer_event,
    "a checkpoint of another workspace": another_checkpoint,
    "the disk fails": disk_fails,
    "the disk is mended": disk_mended,
}
