"""Commands that agents run: what they write and change is on record, attributed, and undone as one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio.lowlevel
import pytest

from orchestrator.api.commands import CommandAnswer
from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.test_undo import agrees

pytestmark = pytest.mark.anyio

PROCESSES = 40
PYTHON = os.path.realpath(sys.executable)

POLICY = f"""
name = "ours"
extends = "default"

[commands]
output_bytes = 8192
processes = {PROCESSES}

[[rule]]
name = "known"
agents = ["*"]
actions = ["run"]
paths = ["**"]
commands = ["sh -c *", "sh -c * **", "true", "no-such-program", "sleep *"]
verdict = "allow"
"""


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(POLICY)
    started = RunningDaemon(base)
    (started.workspace / "a.txt").write_text("one\ntwo\nthree\n")
    (started.workspace / "gone.txt").write_text("gone\n")
    (started.workspace / "src").mkdir()
    with running(base) as daemon:
        yield daemon


async def shell(files: FileAccess, script: str, *, cwd: str = ".", timeout_s: int = 60) -> CommandAnswer:
    return await files.run_command(["sh", "-c", script], cwd=cwd, timeout_s=timeout_s)


async def test_what_it_changes_is_its_agents_and_one_act(daemon: RunningDaemon) -> None:
    before = (daemon.workspace / "a.txt").read_text()
    async with daemon.client("claude") as claude, daemon.client("bob") as bob, daemon.client() as person:
        (daemon.workspace / "before.txt").write_text("somebody's\n")
        await bob.edit_file("a.txt", [Replacement(search="three", replace="three of bob")])
        answer = await shell(claude, "pwd; echo done >> a.txt; rm gone.txt; mkdir -p new; echo x > new/b.txt; exit 3")
        assert (answer.status, answer.exit_code, answer.output) == ("done", 3, f"{daemon.workspace}\n")
        assert {item.path for item in answer.changes} == {"a.txt", "gone.txt", "new/b.txt"}
        assert [row.agent for row in (await claude.file_history("a.txt")).versions[:2]] == ["claude", "bob"]
        assert [row.agent for row in (await claude.file_history("before.txt")).versions] == ["outside"]
        blamed = await claude.blame("a.txt")
        assert [(lines.start, lines.agent) for lines in blamed.ranges][1:] == [(3, "bob"), (4, "claude")]
        assert answer.group is not None
        await claude.revert(answer.group)
        assert (daemon.workspace / "a.txt").read_text() == before.replace("three", "three of bob")
        assert (daemon.workspace / "gone.txt").read_text() == "gone\n"
        assert not (daemon.workspace / "new").exists()
        assert (await person.session_status()).leases == ()
    await agrees(daemon)


async def test_its_lease_ends_with_it(daemon: RunningDaemon) -> None:
    """In one append, which costs one sync of the disk; also where there was nothing to start."""
    async with daemon.client("claude") as claude, daemon.client() as person:
        await shell(claude, "true")
        with pytest.raises(RemoteError):
            await claude.run_command(["no-such-program"])
        ends = (await person.journal_query(kind="command_ended")).entries
        released = (await person.journal_query(kind="lease_released")).entries
        assert [item.cause for item in released] == [item.cause for item in ends]
        assert [int(item.seq[1:]) for item in released] == [int(item.seq[1:]) + 1 for item in ends]
        assert (await person.session_status()).leases == ()


async def test_people_are_shown_a_command_as_it_is_typed(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude:
        changed = (await claude.run_command(["sh", "-c", "touch b; exit 3"])).group
        assert (await claude.run_command(["make", "a b"])).status == "waiting"
    _, listed = cli(daemon, "command", "list")
    shown = ["in_place", "done", "exit code 3", ".", "sh -c 'touch b; exit 3'", f"(changed files: {changed})"]
    assert listed.strip().split("  ")[-6:] == shown
    _, log = cli(daemon, "log")
    ended, started, asked = (
        next(line for line in log.splitlines() if kind in line)
        for kind in ("command_ended", "command_started", "approval_requested")
    )
    assert ended.endswith("exit code 3")
    assert started.endswith("sh -c 'touch b; exit 3'")
    assert asked.endswith("make 'a b'")


async def test_a_rollback_of_an_agent_takes_its_commands_back(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude:
        await claude.edit_file("a.txt", [Replacement(search="one", replace="ONE")])
        await shell(claude, "echo more >> a.txt; echo x > b.txt")
        (daemon.workspace / "c.txt").write_text("somebody's\n")
        answer = await claude.rollback(agent="claude")
        assert answer.status == "applied"
    assert (daemon.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert not (daemon.workspace / "b.txt").exists()
    assert (daemon.workspace / "c.txt").exists()


async def test_an_agent_has_not_seen_what_its_command_wrote(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude:
        await claude.read_file("a.txt")
        await shell(claude, "sed -i s/two/2/ a.txt")
        (stale,) = (await claude.session_status()).stale
        assert (stale.path, stale.by) == ("a.txt", ("claude",))


async def test_it_begins_in_its_directory_with_few_variables(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude:
        answer = await claude.run_command(
            ["sh", "-c", 'pwd; echo "$CI $ORCHESTRATOR_TOKEN"'], cwd="src", env=["CI=yes"]
        )
        assert answer.output == f"{daemon.workspace}/src\nyes \n"
        with pytest.raises(RemoteError, match="may not be set"):
            await claude.run_command(["true"], env=["PATH=."])


async def test_the_caches_of_its_tools_are_kept_for_its_agent(daemon: RunningDaemon) -> None:
    """Those in the home are read-only to it, and another agent's could be poisoned."""
    made = 'mkdir -p "$folder"; cat "$folder/made"; echo x > "$folder/made"'
    script = f'for folder in "$XDG_CACHE_HOME" "$GOCACHE" "$CARGO_HOME"; do {made}; done'
    async with daemon.client("claude") as claude, daemon.client("bob") as bob:
        for mode in ("in_place", "scratch"):
            for files, there in ((claude, mode == "scratch"), (bob, mode == "scratch")):
                answer = await files.run_command(["sh", "-c", script], mode=mode)
                assert answer.output.count("x\n") == 3 * there, answer.output
                assert answer.group is None


async def test_what_is_hidden_from_its_agent_is_hidden_from_it(daemon: RunningDaemon) -> None:
    (daemon.workspace / ".gitignore").write_text(".env\n")
    (daemon.workspace / ".env").write_text("PASSWORD=hunter2\n")
    (daemon.workspace / "src/server.pem").write_text("a key\n")
    async with daemon.client("claude") as claude, daemon.client() as person:
        confined = (await person.status()).health.commands
        answer = await shell(claude, f"cat .env src/server.pem {daemon.state_dir}/policy.toml; touch ../outside")
    assert answer.confined_by.startswith(confined)
    if confined.startswith("nothing"):
        pytest.skip(f"commands are confined by {confined}")
    assert "known" not in answer.output  # the policy
    assert not (daemon.base / "outside").exists()
    assert answer.group is None
    if confined.startswith("landlock"):
        assert "/.env, " in answer.confined_by  # it says that it can't keep it from the command
    else:
        assert "hunter2" not in answer.output
        assert "a key" not in answer.output


async def test_what_is_closed_since_the_last_one(daemon: RunningDaemon) -> None:
    """By its name, though no version control knows it; by its new name; by another policy."""
    policy = daemon.state_dir / "policy.toml"
    (daemon.workspace / ".gitignore").write_text("*.env\n")
    (daemon.workspace / "src/b.txt").write_text("b\n")
    script = "cat src/.env a.txt a.pem src/b.txt 2>/dev/null"
    async with daemon.client("claude") as claude, daemon.client() as person:
        confined = (await person.status()).health.commands
        if confined.startswith(("nothing", "landlock")):
            pytest.skip(f"commands are confined by {confined}")
        assert (await shell(claude, script)).output == "one\ntwo\nthree\nb\n"
        (daemon.workspace / "src/.env").write_text("PASSWORD=hunter2\n")
        assert (await shell(claude, script)).output == "one\ntwo\nthree\nb\n"
        (daemon.workspace / "a.txt").rename(daemon.workspace / "a.pem")
        assert (await shell(claude, script)).output == "b\n"
        rule = 'agents = ["*"]\nactions = ["read"]\npaths = ["b.txt"]\nverdict = "deny"\n'
        policy.write_text(f'{POLICY}\n[[rule]]\nname = "ours only"\n{rule}')
        await person.policy_reload(approver=await daemon.make_approver())
        assert (await shell(claude, script)).output == ""


async def test_it_changes_nothing_that_other_programs_run(daemon: RunningDaemon) -> None:
    """Git runs hooks, and what its configuration names, with all that a person may do."""
    (daemon.workspace / ".git" / "hooks").mkdir(parents=True)
    (daemon.workspace / ".git" / "config").write_text("[core]\n")
    (daemon.workspace / "Makefile").write_text("all:\n")
    (daemon.workspace / "src" / ".envrc").write_text("export A=1\n")
    async with daemon.client("claude") as claude, daemon.client() as person:
        if (await person.status()).health.commands.startswith(("nothing", "landlock")):
            pytest.skip("there is nothing to mount with")
        answer = await shell(
            claude,
            "echo fsmonitor=evil >> .git/config; echo evil > .git/hooks/pre-commit; mv .git g; "
            "echo evil >> Makefile; rm Makefile; mv src s; echo evil >> src/.envrc; "
            "echo fine > src/fine; echo 1 >> a.txt",
        )
        assert [item.path for item in answer.changes] == ["a.txt", "src/fine"]
        assert answer.output.count("Read-only file system") == 3
        assert {path.name for path in (daemon.workspace / ".git").rglob("*")} == {"hooks", "config"}
        copy = await claude.run_command(["sh", "-c", "echo more >> Makefile"], mode="scratch")
        assert "waits" in copy.warnings[0], copy.warnings
        assert (daemon.workspace / "Makefile").read_text() == "all:\n"


async def test_a_yes_is_for_exactly_one_command_once(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude, daemon.client() as person:
        asked = await claude.run_command(["touch", "made"], reason="to see")
        assert asked.status == "waiting"
        assert (await claude.run_command(["touch", "made"])).approval == asked.approval
        other = await claude.run_command(["touch", "made"], cwd="src")
        assert other.approval not in (None, asked.approval)
        assert asked.approval is not None
        shown = await person.approvals_show(asked.approval)
        assert shown.diff is not None
        assert shown.diff.startswith("run touch made\nin ., in the workspace itself\n")
        await person.approve(asked.approval, approver=await daemon.make_approver())
        assert (await claude.run_command(["touch", "made"], cwd="src")).status == "waiting"
        assert (await claude.run_command(["touch", "made"])).exit_code == 0
        again = await claude.run_command(["touch", "made"])
        assert again.status == "waiting"
        assert again.approval != asked.approval
    await agrees(daemon)


async def test_a_grant_is_for_that_command(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude, daemon.client() as person:
        asked = await claude.run_command(["touch", "made"])
        assert asked.approval is not None
        await person.approvals_show(asked.approval)
        await person.approve(asked.approval, for_session=True, approver=await daemon.make_approver())
        for _ in range(3):
            assert (await claude.run_command(["touch", "made"])).status == "done"
        assert (await claude.run_command(["touch", "other"])).status == "waiting"


async def test_the_same_request_runs_once(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude:
        first = await claude.run_command(["sh", "-c", "echo x >> a.txt"], request_id="r1")
        second = await claude.run_command(["sh", "-c", "echo x >> a.txt"], request_id="r1")
        assert (first.command, first.group) == (second.command, second.group)
    assert (daemon.workspace / "a.txt").read_text().count("x") == 1


async def test_a_program_that_is_not_there(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude:
        with pytest.raises(RemoteError) as refused:
            await claude.run_command(["no-such-program"])
        assert refused.value.code == "program_not_found"
        (command,) = (await claude.list_commands()).commands
        assert command.status == "failed"
        assert (await shell(claude, "true")).exit_code == 0


async def test_its_output_is_bounded_and_read_on(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude:
        answer = await shell(claude, "seq 1 20000")
        assert answer.output.endswith("\n19999\n20000\n")
        assert answer.left_out == answer.output_bytes - len(answer.output)
        assert answer.command is not None
        start = await claude.command_output(answer.command, max_tokens=50)
        assert start.output.startswith("1\n2\n3\n")
        on = await claude.command_output(answer.command, start=start.end)
        assert on.output.startswith(f"{int(start.output.split()[-1]) + 1}\n")
        middle = await claude.command_output(answer.command, start=50_000)
        assert middle.not_kept == middle.start - 50_000 > 0
        assert middle.end == middle.output_bytes
        last = await claude.command_output(answer.command, start=-12)
        assert (last.output, last.next) == ("19999\n20000\n", None)


async def test_a_flood_of_output_ends_with_its_time(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude, daemon.client("bob") as bob:
        flood = await claude.run_command(["sh", "-c", "yes"], timeout_s=60, background=True)
        assert flood.command is not None
        assert (await bob.read_file("a.txt")).total_lines == 3
        while (await claude.command_output(flood.command)).output_bytes < 50_000_000:
            pass
        stopped = await claude.stop_command(flood.command)
        assert stopped.status == "stopped"
        assert stopped.output.endswith("y\n")


async def test_a_fork_bomb_is_bounded_and_goes_with_its_command(daemon: RunningDaemon) -> None:
    """Each of its processes forks for as long as it can, then waits to do it again; others work on meanwhile."""
    unlike = f"8{os.getpid()}"  # in /proc it tells this bomb from all else
    bomb = (
        f"import os, time  # {unlike}\n"
        "while True:\n try: os.fork()\n except OSError: os.write(1, b'full\\n'); time.sleep(0.2)\n"
    )
    async with daemon.client("claude") as claude, daemon.client("bob") as bob:
        bound = await shell(claude, "true")
        if "any number of processes" in bound.confined_by:
            pytest.skip(f"nothing bounds the processes of a command here: {bound.confined_by}")
        begun = await claude.run_command(["sh", "-c", f"exec '{PYTHON}' -c \"{bomb}\""], background=True)
        assert begun.command is not None
        while (await claude.command_output(begun.command)).output_bytes < 3 * PROCESSES * len("full\n"):
            pass
        edited = await bob.edit_file("a.txt", [Replacement(search="one", replace="ONE")])
        assert edited.status == "applied"
        assert PROCESSES - 2 <= len(_running(unlike)) <= PROCESSES + 3, "the launcher's own among them"
        assert (await claude.stop_command(begun.command)).status == "stopped"
        assert _running(unlike) == []
    await agrees(daemon)


async def test_secrets_in_its_output_are_hidden_from_agents(daemon: RunningDaemon) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    async with daemon.client("claude") as claude, daemon.client() as person:
        answer = await shell(claude, f"printf '\\033[31mtoken\\033[0m %s\\n' {token[:20]}{token[20:]}")
        assert token not in answer.output
        assert answer.output.startswith("token ")
        assert answer.command is not None
        assert token not in (await claude.command_output(answer.command)).output
        assert token in (await person.command_output(answer.command)).output


async def test_no_part_of_a_secret_is_shown_where_a_page_ends_in_it(daemon: RunningDaemon) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    async with daemon.client("claude") as claude:
        answer = await shell(claude, f"printf 'word%.0s ' $(seq 37); printf '%s then\\n' {token}; echo last")
        assert answer.command is not None
        whole = await claude.command_output(answer.command)
        assert token not in whole.output
        assert "last" in whole.output
        for start in range(0, 240, 8):
            part = await claude.command_output(answer.command, start=start, max_tokens=50)
            assert not any(token[i : i + 8] in part.output for i in range(len(token) - 8)), start


async def test_a_return_before_a_line_end_hides_no_secret(daemon: RunningDaemon) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    async with daemon.client("claude") as claude:
        answer = await shell(claude, f"printf 'one\\r\\r\\ntwo\\rthree\\r\\n%s\\rlast\\n' {token}")
        assert token not in answer.output
        assert "last" in answer.output


async def test_what_it_leaves_behind_ends_with_it(daemon: RunningDaemon) -> None:
    unlike = f"9{os.getpid()}"  # seconds; in /proc it tells this process from others
    async with daemon.client("claude") as claude:
        answer = await shell(
            claude, f"setsid sh -c 'echo x > begun; exec sleep {unlike}' & while [ ! -e begun ]; do :; done"
        )
        assert [item.path for item in answer.changes] == ["begun"]
        assert _running(unlike) == []


def _running(unlike: str) -> list[Path]:
    """The processes that have this in their command line."""
    return [path for path in Path("/proc").glob("[0-9]*/cmdline") if unlike.encode() in _read(path)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


async def test_one_that_calls_the_daemon_is_refused(daemon: RunningDaemon) -> None:
    """As a person of the same user, it could do what the agent may not. A view of its own shows it no socket at all."""
    calls = (
        "import json, os, socket, sys, time\n"
        "read, write = os.pipe()\n"
        "if os.fork(): os.close(write); sys.exit(print(os.fdopen(read).read()))\n"
        "os.setsid()\ncalled = socket.socket(socket.AF_UNIX)\ncalled.connect(sys.argv[1])\n"
        "connected = os.getpid()\n"
        "if os.fork(): os._exit(0)\n"  # who connected is gone when the daemon asks who calls
        "while os.getppid() == connected: time.sleep(0.001)\n"
        "called.sendall(json.dumps({'orchestrator': 1, 'transport': 'rpc', 'person': True}).encode() + b'\\n')\n"
        "os.write(write, called.makefile().readline().encode())"
    )
    async with daemon.client("claude") as claude:
        answer = await claude.run_command(
            ["sh", "-c", 'exec "$0" "$@"', os.path.realpath(sys.executable), "-c", calls, str(daemon.socket)]
        )
        refused = "a command that an agent runs can't call the daemon" in answer.output
        hidden = "Error" in answer.output and answer.confined_by.startswith(("namespaces", "bubblewrap"))
        assert refused or hidden, answer.output


async def test_one_that_ignores_being_asked_is_ended(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude:
        answer = await shell(claude, "trap '' TERM INT; echo x > b.txt; while :; do sleep 1; done", timeout_s=1)
        assert answer.status == "timed_out"
        assert [item.path for item in answer.changes] == ["b.txt"]


async def test_it_runs_on_in_the_background_until_it_is_stopped(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude, daemon.client("bob") as bob:
        answer = await claude.run_command(["sh", "-c", "echo x > b.txt; echo begun; sleep 600"], background=True)
        assert (answer.status, answer.exit_code) == ("running", None)
        assert answer.command is not None
        while (await claude.command_output(answer.command)).output != "begun\n":
            pass
        assert [item.status for item in (await claude.list_commands(running=True)).commands] == ["running"]
        for refused in (bob.stop_command, bob.command_output):
            with pytest.raises(RemoteError, match="is not a command of bob"):
                await refused(answer.command)
        edited = await bob.edit_file("a.txt", [Replacement(search="one", replace="ONE")])
        assert "reserved by claude" in edited.warnings[0]
        ended = await claude.stop_command(answer.command)
        assert (ended.status, [item.path for item in ended.changes]) == ("stopped", ["b.txt"])
        assert (await claude.file_history("a.txt")).versions[0].agent == "bob"


async def test_a_lease_of_another_keeps_it_out_where_policy_says_so(base: Path) -> None:
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(f'{POLICY}\n[leases]\non_overlap = "deny"\n')
    with running(base) as daemon:
        async with daemon.client("claude") as claude, daemon.client("bob") as bob:
            held = await bob.reserve_paths(["src"])
            with pytest.raises(RemoteError) as refused:
                await shell(claude, "true")
            assert refused.value.code == "path_reserved"
            assert held.lease is not None
            await bob.release_paths(held.lease)
            assert (await shell(claude, "true")).exit_code == 0


async def test_many_files_are_one_act(daemon: RunningDaemon) -> None:
    count = 2000
    async with daemon.client("claude") as claude:
        answer = await shell(claude, f"for n in $(seq {count}); do echo $n > src/$n.txt; done")
        assert len(answer.changes) + answer.more_changes == count
        assert answer.group is not None
        undone = await claude.revert(answer.group)
        assert undone.status == "applied"
    assert not list((daemon.workspace / "src").glob("*.txt"))


async def test_what_it_changes_right_after_the_start_is_undone(base: Path) -> None:
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(POLICY)
    source = RunningDaemon(base).workspace / "src"
    source.mkdir()
    for number in range(1500):
        (source / f"{number}.txt").write_text(f"{number}\n")
    with running(base) as daemon:
        async with daemon.client("claude") as claude:
            answer = await shell(claude, "for f in src/*; do echo more >> $f; done")
            assert (answer.status, answer.warnings) == ("done", ())
            assert len(answer.changes) + answer.more_changes == 1500
            assert answer.group is not None
            assert (await claude.revert(answer.group)).warnings == ()
        assert {file.name: file.read_text() for file in source.iterdir()} == {f"{n}.txt": f"{n}\n" for n in range(1500)}


async def test_one_that_deletes_all_there_is(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude:
        answer = await shell(claude, 'rm -rf "$PWD"/* && echo all')
        assert {item.path for item in answer.changes} == {"a.txt", "gone.txt"}
        assert answer.group is not None
        await claude.revert(answer.group)
    assert (daemon.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"


async def test_one_that_deletes_the_workspace_itself(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude:
        answer = await shell(claude, 'cd / && rm -rf "$OLDPWD" 2> /dev/null; echo tried')
        assert (answer.status, answer.output) == ("done", "tried\n")
        if daemon.workspace.exists():  # what confines it keeps the folder itself
            assert answer.group is not None
            await claude.revert(answer.group)
            assert (daemon.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
            return
        with pytest.raises(RemoteError) as refused:
            await shell(claude, "true")
        assert refused.value.code == "workspace_moved"


async def test_a_daemon_that_is_stopped_ends_it_and_says_so(base: Path) -> None:
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(POLICY)
    with running(base) as daemon:
        async with daemon.client("claude") as claude:
            answer = await claude.run_command(["sh", "-c", "echo x > b.txt; echo $$ > pid; sleep 600"], background=True)
            while not (daemon.workspace / "pid").exists() or not (daemon.workspace / "pid").read_text():
                await anyio.lowlevel.checkpoint()
    with running(base) as daemon:
        async with daemon.client("claude") as claude:
            (command,) = (await claude.list_commands()).commands
            assert (command.command, command.status, command.change_count) == (answer.command, "stopped", 2)
            assert (await claude.file_history("b.txt")).versions[0].agent == "claude"


async def test_a_daemon_that_is_killed_loses_it(base: Path) -> None:
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(POLICY)
    with running(base) as daemon:
        async with daemon.client("claude") as claude:
            answer = await claude.run_command(["sh", "-c", "echo $$ > pid; sleep 600"], background=True)
            while not (daemon.workspace / "pid").exists() or not (daemon.workspace / "pid").read_text():
                await anyio.lowlevel.checkpoint()
        daemon.kill()
        daemon.start()
        async with daemon.client("claude") as claude:
            (command,) = (await claude.list_commands()).commands
            assert (command.command, command.status) == (answer.command, "lost")
            assert (await claude.session_status()).leases == ()
            assert (await shell(claude, "true")).exit_code == 0


async def test_what_it_makes_of_a_copy_comes_back_as_one_change(daemon: RunningDaemon) -> None:
    (daemon.workspace / "server.pem").write_text("a key\n")
    script = "ls; echo four >> a.txt; rm mine.txt; mkdir new; printf '\\000\\001' > new/b.bin; cat server.pem; exit 4"
    async with daemon.client("claude") as claude:
        await claude.write_file("mine.txt", "x\n", "create")
        answer = await claude.run_command(["sh", "-c", script], mode="scratch")
        assert (answer.status, answer.exit_code, answer.mode) == ("done", 4, "scratch")
        assert answer.output.startswith("a.txt\ngone.txt\nmine.txt\n")
        assert "a key" not in answer.output
        assert {item.path for item in answer.changes} == {"a.txt", "mine.txt", "new/b.bin"}
        assert (daemon.workspace / "a.txt").read_text() == "one\ntwo\nthree\nfour\n"
        assert (daemon.workspace / "new/b.bin").read_bytes() == b"\0\1"
        assert not (daemon.workspace / "mine.txt").exists()
        assert (await claude.file_history("a.txt")).versions[0].agent == "claude"
        assert (daemon.workspace / "server.pem").exists()
        assert answer.group is not None
        await claude.revert(answer.group)
    assert (daemon.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert (daemon.workspace / "mine.txt").exists()
    await agrees(daemon)


async def test_a_copy_sees_what_changed_since_the_last_one(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude:
        first = await claude.run_command(["sh", "-c", "cat a.txt; echo 1 > mine"], mode="scratch")
        assert (first.output, [item.path for item in first.changes]) == ("one\ntwo\nthree\n", ["mine"])
        (daemon.workspace / "a.txt").write_text("changed\n")
        (daemon.workspace / "gone.txt").unlink()
        second = await claude.run_command(["sh", "-c", "cat a.txt mine; ls"], mode="scratch")
        assert (second.output, second.changes) == ("changed\n1\na.txt\nmine\n", ())
        third = await claude.run_command(["sh", "-c", "echo > made"], mode="scratch", cwd="src")  # it has no files
        assert [item.path for item in third.changes] == ["src/made"]


async def test_no_copy_that_is_kept_has_a_redacted_content(daemon: RunningDaemon) -> None:
    kept = daemon.state_dir / "scratch_base"
    code = await daemon.make_approver()
    async with daemon.client("claude") as claude, daemon.client() as person:
        made = await claude.write_file("secret", "hunter2\n", "create")
        await claude.run_command(["true"], mode="scratch")
        if not kept.exists():
            pytest.skip("trees are copied whole here")
        await claude.write_file("secret", "none\n", "truncate")
        await person.journal_redact(blob=made.version_id, approver=code)
        assert not kept.exists()
        assert (await claude.run_command(["sh", "-c", "cat secret"], mode="scratch")).output == "none\n"


async def test_a_file_where_a_directory_was_is_left_out_of_what_comes_back(daemon: RunningDaemon) -> None:
    script = "rm -r dir; echo > dir; rm file; mkdir file; echo > file/x; echo > fine"
    async with daemon.client("claude") as claude:
        await claude.write_file("dir/y", "1\n", "create")
        await claude.write_file("file", "2\n", "create")
        answer = await claude.run_command(["sh", "-c", script], mode="scratch")
        assert [item.path for item in answer.changes] == ["fine"]
        assert len(answer.warnings) == 1
        assert answer.warnings[0].startswith("4 files did not come back")
        assert answer.warnings[0].endswith(": dir, dir/y, file, file/x")
    assert (daemon.workspace / "dir/y").read_text() == "1\n"
    await agrees(daemon)


async def test_a_copy_deletes_nothing_of_others_without_a_yes(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude, daemon.client() as person:
        answer = await claude.run_command(["sh", "-c", "rm gone.txt"], mode="scratch")
        assert (answer.status, answer.changes) == ("done", ())
        assert "waits for a person's yes: delete-or-move" in answer.warnings[0]
        assert (daemon.workspace / "gone.txt").exists()
        (waiting,) = (await person.approvals_list()).approvals
        await person.approvals_show(waiting.approval)
        await person.approve(waiting.approval, approver=await daemon.make_approver())
    assert not (daemon.workspace / "gone.txt").exists()


async def test_what_others_changed_meanwhile_is_merged_or_a_conflict(daemon: RunningDaemon) -> None:
    lines = "".join(f"line {n}\n" for n in range(1, 31))
    (daemon.workspace / "long.txt").write_text(lines)
    script = f"""
        sed -i 's/^line 2$/line 2 of claude/' long.txt; sed -i s/two/2/ a.txt
        while [ ! -e {daemon.workspace}/go ]; do :; done
    """
    async with daemon.client("claude") as claude, daemon.client("bob") as bob:
        started = await claude.run_command(["sh", "-c", script], mode="scratch", background=True)
        await bob.edit_file("long.txt", [Replacement(search="line 29\n", replace="line 29 of bob\n")])
        await bob.edit_file("a.txt", [Replacement(search="two", replace="TWO")])
        assert started.status == "running"
        await bob.write_file("go", "", "create")
        while (await claude.list_commands(running=True)).commands:
            pass
        merged = lines.replace("line 2\n", "line 2 of claude\n").replace("line 29\n", "line 29 of bob\n")
        assert (daemon.workspace / "long.txt").read_text() == merged
        assert (daemon.workspace / "a.txt").read_text() == "one\nTWO\nthree\n"
        assert [item.path for item in (await claude.list_conflicts()).conflicts] == ["a.txt"]
    await agrees(daemon)


async def test_what_policy_denies_does_not_come_back(base: Path) -> None:
    (base / "state").mkdir(mode=0o700)
    denied = '[[rule]]\nname = "kept"\nagents = ["*"]\nactions = ["create", "write", "delete"]\npaths = ["src"]\n'
    (base / "state/policy.toml").write_text(f'{POLICY}\n{denied}verdict = "deny"\n')
    with running(base) as daemon:
        async with daemon.client("claude") as claude:
            answer = await claude.run_command(["sh", "-c", "mkdir src; echo x > src/x; echo y > y"], mode="scratch")
            assert [item.path for item in answer.changes] == ["y"]
            assert answer.warnings == ("policy keeps 1 file from coming back: src/x",)
        assert not (daemon.workspace / "src").exists()


@pytest.mark.parametrize("gone", [False, True])
async def test_a_swap_file_does_not_keep_the_rest_from_being_undone(daemon: RunningDaemon, *, gone: bool) -> None:
    async with daemon.client("claude") as claude:
        ran = await shell(claude, "echo good >> a.txt; echo x > .a.txt.swp")
        swap = daemon.workspace / ".a.txt.swp"
        if gone:
            swap.unlink()
        undone = await (claude.rollback(agent="claude") if gone else claude.revert(ran.group or ""))
        assert undone.status == "applied"
        assert (daemon.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
        assert [note.partition(":")[0] for note in undone.warnings] == ([] if gone else [".a.txt.swp"])
        assert swap.exists() is not gone


@pytest.mark.parametrize(
    ("script", "stands"),
    [
        ("rm gone.txt; mkdir gone.txt; echo in > gone.txt/f", "gone.txt/f"),
        ("rm -r src; echo file > src", "src"),
    ],
)
async def test_a_file_and_a_folder_that_changed_places_stay_and_the_rest_goes_back(
    daemon: RunningDaemon, script: str, stands: str
) -> None:
    async with daemon.client("claude") as claude:
        await claude.write_file("src/q.txt", "q\n", mode="create")
        ran = await shell(claude, f"echo more >> a.txt; {script}")
        undone = await claude.revert(ran.group or "")
        assert (undone.status, {item.path for item in undone.paths}) == ("applied", {"a.txt"})
        assert (daemon.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
        assert (daemon.workspace / stands).is_file()
        assert any(note.startswith(f"{stands}: ") for note in undone.warnings)
        (daemon.workspace / stands).unlink()
        if "/" in stands:
            (daemon.workspace / stands).parent.rmdir()
        again = await claude.revert(ran.group or "")
        assert again.status == "applied"
        assert (daemon.workspace / "gone.txt").read_text() == "gone\n"
        assert (daemon.workspace / "src/q.txt").read_text() == "q\n"


async def test_where_all_changed_places_the_refusal_says_what_to_delete(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude:
        await claude.write_file("src/q.txt", "q\n", mode="create")
        ran = await shell(claude, "rm -r src; echo file > src")
        with pytest.raises(RemoteError) as refused:
            await claude.revert(ran.group or "")
        assert (refused.value.code, (refused.value.hint or "")[:11]) == ("revert_impossible", "Delete src,")
        assert (daemon.workspace / "src").read_text() == "file\n"
