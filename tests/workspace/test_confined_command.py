"""Commands that agents run: what they can't do, however they try, and that nothing of them is left."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from orchestrator.clients.running_daemon import readable
from orchestrator.ports.commands import CommandSpec
from orchestrator.workspace import command_confinement, landlock
from orchestrator.workspace import namespaces as namespaces_module
from orchestrator.workspace.command_confinement import Confinement, find_confinement
from orchestrator.workspace.confined_command import ConfinedCommand, ConfinedCommands
from orchestrator.workspace.fork_server import ForkServer, LaunchedProcess

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has either"),
]

PATIENCE_S = 60
PYTHON = os.path.realpath(sys.executable)
TRIED = """
import ctypes, os, signal, socket, sys
def tried(work):
    try:
        work()
    except OSError:
        return False
    return True
"""


class Ground:
    """A workspace, the daemon's own folder beside it, and a folder of somebody's."""

    def __init__(self, base: Path) -> None:
        self.name = base.name
        self.work, self.state, self.elsewhere = base / "work", base / "state", base / "elsewhere"
        for folder in (self.work, self.state, self.elsewhere):
            folder.mkdir(exist_ok=True)
        (self.work / "file").write_text("file's text")
        (self.work / ".env").write_text("KEY=secret")
        (self.state / "journal").write_text("journal's text")
        (self.elsewhere / "theirs").write_text("their text")

    def leftovers(self) -> list[Path]:
        return [*Path(tempfile.gettempdir()).glob(f"orchestrator-{self.name}-*")]

    def runner(self, confinement: Confinement) -> ConfinedCommands:
        return ConfinedCommands(confinement, workspace=str(self.work), own=[str(self.state)], name=self.name)

    def spec(self, *argv: str, **more: object) -> CommandSpec:
        given = {"writable": (str(self.work),), "hidden": (str(self.work / ".env"),), **more}
        return CommandSpec(argv=argv, cwd=str(self.work), environment={"PATH": os.defpath, "A": "1"}, **given)  # type: ignore[arg-type]


@pytest.fixture
def ground(base: Path) -> Ground:
    return Ground(base)


def landlock_alone() -> Confinement:
    try:
        landlock.abi()
    except OSError as error:
        pytest.skip(f"no Landlock here: {landlock.why_not(error)}")
    return Confinement("landlock")


def bubblewrap() -> Confinement:
    program = shutil.which("bwrap")
    if program is None or command_confinement._failure(program, *command_confinement._BUBBLEWRAP, "true"):
        pytest.skip("bubblewrap is not installed, or does not work here")
    return Confinement("bubblewrap", program)


def namespaces() -> Confinement:
    found = find_confinement()
    if found.by != "namespaces":
        pytest.skip(found.lacking)
    return found


@pytest.fixture(params=[namespaces, bubblewrap, landlock_alone])
def confinement(request: pytest.FixtureRequest) -> Confinement:
    return request.param()  # type: ignore[no-any-return]


@pytest.fixture
def runner(ground: Ground, confinement: Confinement) -> ConfinedCommands:
    return ground.runner(confinement)


async def ended(command: ConfinedCommand) -> tuple[int, str]:
    """Its code, and all that it printed; every process of it is gone when the output ends."""
    try:
        with anyio.fail_after(PATIENCE_S):
            output = b"".join([piece async for piece in command.output()])
            return await command.wait(), output.decode()
    finally:
        with anyio.CancelScope(shield=True):
            await command.end()


async def started_and_ended(ground: Ground, runner: ConfinedCommands) -> ConfinedCommand:
    command = await runner.start(ground.spec("true"))
    await ended(command)
    return command


async def python(runner: ConfinedCommands, spec: CommandSpec) -> str:
    code, output = await ended(await runner.start(spec))
    assert code == 0, output
    return output.strip()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def program(text: str) -> tuple[str, str, str, str]:
    return PYTHON, "-I", "-c", TRIED + textwrap.dedent(text)


# --- what it says -------------------------------------------------------------------------


async def test_output_code_and_surroundings(ground: Ground, runner: ConfinedCommands) -> None:
    text = "echo out; echo $A $HOME; pwd; cat; echo err >&2; exit 3"
    code, output = await ended(await runner.start(ground.spec("sh", "-c", text)))
    assert (code, output) == (3, f"out\n1\n{ground.work}\nerr\n")


async def test_the_signal_that_ended_it(ground: Ground, runner: ConfinedCommands) -> None:
    code, _ = await ended(await runner.start(ground.spec("sh", "-c", "kill -SEGV $$")))
    assert code == -signal.SIGSEGV


@pytest.mark.parametrize(
    ("argv", "refused"),
    [
        pytest.param("no-such-program", FileNotFoundError, id="no program"),
        pytest.param("./nothing", FileNotFoundError, id="no file"),
        pytest.param("./file", PermissionError, id="no program's mode"),
        pytest.param("..", FileNotFoundError, id="a folder's name"),
        pytest.param("../work", PermissionError, id="a folder"),
    ],
)
async def test_what_can_not_be_started(
    ground: Ground, runner: ConfinedCommands, argv: str, refused: type[OSError]
) -> None:
    with pytest.raises(refused):
        await runner.start(ground.spec(argv))


async def test_what_the_kernel_does_not_start(ground: Ground) -> None:
    """Bubblewrap says it in the output."""
    (ground.work / "file").chmod(0o755)
    runner = ground.runner(landlock_alone())
    with pytest.raises(OSError, match="Exec format error"):
        await runner.start(ground.spec("./file"))
    assert not ground.leftovers()


async def test_a_program_in_the_folder_for_temporaries(ground: Ground, runner: ConfinedCommands) -> None:
    """Bubblewrap gives it a folder of its own there; a virtual environment may lie in ours."""
    installed = ground.elsewhere / "bin" / "program"
    installed.parent.mkdir()
    (ground.elsewhere / "lib").write_text("its library\n")
    installed.write_text('#!/bin/sh\ncat "${0%/*}/../lib"\n')
    installed.chmod(0o755)
    assert await ended(await runner.start(ground.spec(str(installed)))) == (0, "its library\n")


# --- its end ------------------------------------------------------------------------------


async def test_what_it_leaves_behind_ends_with_it(ground: Ground, runner: ConfinedCommands) -> None:
    """The sleeper keeps the output open, in a session of its own."""
    code, output = await ended(await runner.start(ground.spec("sh", "-c", "setsid sleep 600 & echo left; exit 0")))
    assert (code, output) == (0, "left\n")


async def test_who_ignores_to_be_asked_is_ended(ground: Ground, runner: ConfinedCommands) -> None:
    text = "trap '' TERM INT HUP; setsid sleep 600 & echo ready; wait; wait; sleep 600"
    command = await runner.start(ground.spec("sh", "-c", text))
    output = command.output()
    with anyio.fail_after(PATIENCE_S):
        assert await anext(output) == b"ready\n"
        await command.end()
        assert await command.wait() < 0
        assert [piece async for piece in output] == []


async def test_what_starts_them_was_ended(ground: Ground, runner: ConfinedCommands) -> None:
    """What runs ends with it; the next command has a new one."""
    command = await runner.start(ground.spec("sh", "-c", "setsid sleep 600 & echo ready; wait"))
    output = command.output()
    with anyio.fail_after(PATIENCE_S):
        assert await anext(output) == b"ready\n"
        os.kill(parent_of(command.pid), signal.SIGKILL)
        assert await command.wait() == -signal.SIGTERM
        assert [piece async for piece in output] == []
        await command.end()
        assert await ended(await runner.start(ground.spec("echo", "again"))) == (0, "again\n")


async def test_its_launcher_was_ended(ground: Ground, runner: ConfinedCommands) -> None:
    command = await runner.start(ground.spec("sh", "-c", "sleep 600"))
    assert runner.holds(command.pid)
    with anyio.fail_after(PATIENCE_S):
        os.kill(command.pid, signal.SIGKILL)
        assert await command.wait() == -signal.SIGKILL
        await command.end()
    assert not runner.holds(command.pid)


async def test_it_is_known_from_its_first_moment(
    ground: Ground, runner: ConfinedCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before who started it goes on: what it is allowed must not depend on how fast it is."""
    launch, held = ForkServer.launch, []

    def launched(server: ForkServer, message: bytes) -> LaunchedProcess:
        process = launch(server, message)
        held.append(runner.holds(process.pid))
        return process

    monkeypatch.setattr(ForkServer, "launch", launched)
    await ended(await runner.start(ground.spec("true")))
    assert held == [True]
    assert not runner.holds(os.getpid())


async def test_descriptors(ground: Ground, runner: ConfinedCommands) -> None:
    """A command is given none but the first three; none is left open here."""
    text = "print(sorted(int(name) for name in os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')))"
    assert await python(runner, ground.spec(*program(text))) == "[0, 1, 2] 4"  # and that of the listing
    (ground.work / "file").chmod(0o755)  # which the kernel does not start
    gc.collect()  # the fork servers of other tests
    before = set(os.listdir("/proc/self/fd"))
    for argv in ("true", "./file", "no-such-program"):
        with suppress(OSError):
            await ended(await runner.start(ground.spec(argv)))
    unread = await runner.start(ground.spec("echo", "nobody reads this"))
    await unread.end()
    assert set(os.listdir("/proc/self/fd")) <= before


def test_it_ends_with_the_daemon(ground: Ground, confinement: Confinement) -> None:
    """What starts it is killed: the sleeper, and then its TMPDIR, are gone, and so is the fork server."""
    text = f"""
        import anyio, sys
        from tests.workspace.test_confined_command import Confinement, Ground
        from pathlib import Path
        async def main():
            ground = Ground(Path({str(ground.work.parent)!r}))
            runner = ground.runner(Confinement(*{tuple(confinement)!r}))
            command = await runner.start(ground.spec("sh", "-c", "echo > $TMPDIR/a; echo; setsid sleep 600 & wait"))
            async for piece in command.output():
                sys.stdout.write(str(command.pid) + chr(10))
                sys.stdout.flush()
        anyio.run(main)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(text)], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        launcher, server = map(os.pidfd_open, (pid, parent_of(pid)))
        starter.kill()
    for process in (launcher, server):
        assert readable(process, PATIENCE_S)
        os.close(process)
    assert not ground.leftovers()


# --- files --------------------------------------------------------------------------------


async def test_it_writes_where_it_may_and_nowhere_else(ground: Ground, runner: ConfinedCommands) -> None:
    (ground.work / "way_out").symlink_to(ground.elsewhere)
    text = f"""
        out, work, outside = {str(ground.elsewhere)!r}, {str(ground.work)!r}, []
        for way in (out, work + "/way_out", "/proc/self/root" + out, work + "/../elsewhere"):
            outside += [
                tried(lambda: open(way + "/new", "w")),
                tried(lambda: open(way + "/theirs", "a")),
                tried(lambda: os.truncate(way + "/theirs", 0)),
                tried(lambda: os.unlink(way + "/theirs")),
                tried(lambda: os.mkdir(way + "/folder")),
                tried(lambda: os.rename(way + "/theirs", work + "/mine")),
                tried(lambda: os.rename(work + "/file", way + "/theirs")),
                tried(lambda: os.link(way + "/theirs", work + "/mine")),
                tried(lambda: os.symlink("x", way + "/link")),
            ]
        open("made", "w").write("text")
        os.mkdir("folder")
        os.rename("made", "folder/made")
        open("/dev/null", "w").write("x")
        print(any(outside), open("folder/made").read(), open("file").read(), sorted(os.listdir(".")))
    """
    output = await python(runner, ground.spec(*program(text)))
    assert output == "False text file's text ['.env', 'file', 'folder', 'way_out']"
    assert [(path.name, path.read_text()) for path in ground.elsewhere.iterdir()] == [("theirs", "their text")]


async def test_nothing_is_writable_that_is_not_named(ground: Ground, runner: ConfinedCommands) -> None:
    text = "print(tried(lambda: open('file', 'a')), tried(lambda: open('new', 'w')), open('file').read())"
    assert await python(runner, ground.spec(*program(text), writable=())) == "False False file's text"


async def test_the_daemons_own_files_are_closed(ground: Ground, runner: ConfinedCommands) -> None:
    text = f"""
        state, scratch = {str(ground.state)!r}, {str(ground.state / "scratch")!r}
        print(
            tried(lambda: open(state + "/journal")),
            tried(lambda: open("/proc/self/root" + state + "/journal")),
            tried(lambda: open(state + "/new", "w")),
            tried(lambda: os.link(state + "/journal", scratch + "/journal")),
            tried(lambda: os.rename(state + "/journal", scratch + "/journal")),
            tried(lambda: os.unlink(state + "/journal")),
            tried(lambda: open(scratch + "/new", "w").write("x")),
            tried(lambda: open(scratch + "/new")),
        )
    """
    (ground.state / "scratch").mkdir()
    output = await python(runner, ground.spec(*program(text), writable=(str(ground.state / "scratch"),)))
    assert output == "False False False False False False True True"
    assert (ground.state / "journal").read_text() == "journal's text"


async def test_what_is_hidden_can_not_be_read(ground: Ground, runner: ConfinedCommands) -> None:
    """Here all the rest is read-only, as for a command in a scratch tree."""
    (ground.work / "secrets").mkdir()
    (ground.work / "secrets" / "key").write_text("secret")
    (ground.work / "way").symlink_to("secrets/key")
    hidden = tuple(str(ground.work / name) for name in (".env", "secrets", "nothing"))
    text = """
        ways = (".env", "secrets/key", "way", "/proc/self/cwd/.env")
        print([tried(lambda: open(way)) for way in ways], open("file").read(), len(os.listdir(".")))
    """
    output = await python(runner, ground.spec(*program(text), writable=(), hidden=hidden))
    assert output == "[False, False, False, False] file's text 4"


@pytest.mark.parametrize("in_place", [True, False])
async def test_passwords_in_the_configuration_of_git(
    ground: Ground, runner: ConfinedCommands, confinement: Confinement, in_place: bool
) -> None:
    """Git works all the same, also where a command runs elsewhere and names it by its whole path."""
    git, config = ("git", "-C", str(ground.work)), ground.work / ".git" / "config"
    await anyio.run_process([*git, "init", "-q"])
    with config.open("a") as file:
        file.write('[remote "origin"]\n\turl = https://me:hunter2@host/x.git\n[user]\n\tname = Ann\n')
        file.write(
            '[http "https://host"] extraHeader = Authorization: Basic hunter3\n[credential]\nhelper = !echo hunter4\n'
        )
    before = config.read_bytes()
    given = {"hidden": (), "read_only": (str(config.parent),)} if in_place else {"hidden": (), "writable": ()}
    listed = await runner.start(ground.spec(*git, "-c", "safe.directory=*", "config", "--local", "--list", **given))
    code, said = await ended(listed)
    assert (code, "user.name=Ann" in said) == (0, True), said
    if confinement.by == "landlock":
        assert "passwords in .git" in listed.confined_by
    else:
        assert "remote.origin.url=https://host/x.git" in said
        assert "hunter" not in said
        assert "hunter" not in (await ended(await runner.start(ground.spec("cat", str(config), **given))))[1]
    assert config.read_bytes() == before
    assert ground.leftovers() == []


async def test_where_nothing_is_hidden_all_is_read(ground: Ground, confinement: Confinement) -> None:
    runner = ConfinedCommands(confinement, workspace=str(ground.work), own=(), name=ground.name)
    command = await runner.start(ground.spec("cat", ".env", hidden=()))
    assert await ended(command) == (0, "KEY=secret")


async def test_its_processes_have_a_limit(ground: Ground, runner: ConfinedCommands, confinement: Confinement) -> None:
    if os.getuid() == 0 and not (confinement.by == "namespaces" and namespaces_module.bounds_processes()):
        assert "any number of processes" in (await started_and_ended(ground, runner)).confined_by
        pytest.skip("Linux does not limit root's processes here, and that is said")
    text = """
        import time
        count = 0
        while count < 100 and tried(lambda: os.fork() or time.sleep(600)):
            count += 1
        print(count)
    """
    count = int(await python(runner, ground.spec(*program(text), processes=10)))
    assert 0 < count < (11 if confinement.by == "namespaces" else 100)  # Linux counts all of the user's in the others
    assert "processes" not in (await started_and_ended(ground, runner)).confined_by


async def test_what_is_hidden_where_it_writes(
    ground: Ground, runner: ConfinedCommands, confinement: Confinement
) -> None:
    """Landlock can't, and says so."""
    command = await runner.start(ground.spec(*program("print(tried(lambda: open('.env')), os.listdir().sort())")))
    _, output = await ended(command)
    closed = confinement.by != "landlock"
    assert output == f"{not closed} None\n"
    assert (str(ground.work / ".env") in command.confined_by) is not closed
    assert (ground.work / ".env").read_text() == "KEY=secret"


async def test_too_many_names_beside_what_is_hidden(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon's own files stay closed; for the others it is said."""
    for number in range(20):
        (ground.work / f"f{number}").touch()
    runner = ground.runner(landlock_alone())
    monkeypatch.setattr(command_confinement, "MOST_READABLE", 10)
    text = f"print(tried(lambda: open('.env')), tried(lambda: open({str(ground.state / 'journal')!r})))"
    command = await runner.start(ground.spec(*program(text), writable=()))
    assert (await ended(command))[1] == "True False\n"
    assert str(ground.work / ".env") in command.confined_by


async def test_landlock_does_not_open_the_daemons_own_files(ground: Ground) -> None:
    runner = ground.runner(landlock_alone())
    with pytest.raises(PermissionError, match="own files"):
        await runner.start(ground.spec("true", writable=(str(ground.work.parent),)))


async def test_what_other_programs_would_run_is_read_only(
    ground: Ground, runner: ConfinedCommands, confinement: Confinement
) -> None:
    """Nor is a folder above it renamed, to put another one in its place. Landlock can't keep that, and says so."""
    (ground.work / ".git" / "hooks").mkdir(parents=True)
    (ground.work / ".git" / "config").write_text("[core]")
    (ground.work / "ci" / "flows").mkdir(parents=True)
    (ground.work / "ci" / "flows" / "a.yml").write_text("on: push")
    text = """
        print(
            tried(lambda: open(".git/config", "a")),
            tried(lambda: open(".git/hooks/pre-commit", "w")),
            tried(lambda: os.rename(".git", "moved")),
            tried(lambda: os.rename("ci/flows", "ci/x")),
            tried(lambda: open("ci/flows/a.yml", "a")),
            tried(lambda: os.unlink("ci/flows/a.yml")),
            tried(lambda: open("ci/flows/b.yml", "w")),
            tried(lambda: open("file", "a")),
            tried(lambda: open("ci/new", "w")),
            open(".git/config").read(),
        )
    """
    read_only = tuple(str(ground.work / name) for name in (".git", "ci/flows/a.yml", "nothing"))
    command = await runner.start(ground.spec(*program(text), hidden=(), read_only=read_only))
    _, output = await ended(command)
    if confinement.by == "landlock":
        assert output == "False False False True False False False True True [core]\n"
        assert f"changes of {ground.work}/ci/flows/a.yml" in command.confined_by
        assert f"makes, renames and removes nothing in {ground.work} itself" in command.confined_by
    else:
        assert output == "False False False False False False True True True [core]\n"


async def test_a_workspace_in_memory(confinement: Confinement) -> None:
    """What is in /dev is covered by devices of its own, but for the workspace."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        ground = Ground(Path(folder))
        text = "print(open('file').read(), tried(lambda: open('new', 'w')), os.path.exists('../elsewhere'))"
        output = await python(ground.runner(confinement), ground.spec(*program(text)))
    assert output == f"file's text True {confinement.by == 'landlock'}"


async def test_the_terminals_of_people(ground: Ground, runner: ConfinedCommands) -> None:
    """Who reads there reads what a person types, such as the approver code."""
    theirs, ours = os.openpty()
    name = os.ttyname(ours)
    text = f"""
        print(tried(lambda: os.open({name!r}, os.O_RDWR | os.O_NOCTTY)), tried(lambda: os.open({name!r}, os.O_RDONLY)))
    """
    assert await python(runner, ground.spec(*program(text))) == "False False"
    os.close(theirs)
    os.close(ours)


async def test_modes_of_other_files(ground: Ground, runner: ConfinedCommands, confinement: Confinement) -> None:
    """Landlock knows nothing of them, and says so."""
    before = (ground.elsewhere / "theirs").stat()
    text = f"""
        print(tried(lambda: os.chmod({str(ground.elsewhere / "theirs")!r}, {before.st_mode & 0o777 ^ 0o011})))
    """
    command = await runner.start(ground.spec(*program(text)))
    _, output = await ended(command)
    assert output == f"{confinement.by == 'landlock'}\n"
    assert ("modes and times" in command.confined_by) is (confinement.by == "landlock")


async def test_sockets_of_others(ground: Ground, runner: ConfinedCommands, confinement: Confinement) -> None:
    """An abstract one needs no file; neither is reached by namespaces and Landlock together."""
    name = f"\0{ground.name}-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(name)
        listening.listen()
        text = f"print(tried(lambda: socket.socket(socket.AF_UNIX).connect({name!r})))"
        command = await runner.start(ground.spec(*program(text), network=True))
        _, output = await ended(command)
    reached = output == "True\n"
    assert reached is (confinement.by == "bubblewrap" or landlock.abi() < 6)
    assert not reached or "Unix sockets" in command.confined_by


# --- TMPDIR -------------------------------------------------------------------------------


async def test_its_temporary_files_go_with_it(ground: Ground, runner: ConfinedCommands) -> None:
    text = """
        folder = os.environ["TMPDIR"]
        os.makedirs(folder + "/a/b")
        open(folder + "/a/b/c", "w").write("text")
        os.symlink(os.getcwd(), folder + "/a/link")
        os.chmod(folder + "/a", 0)
        print(folder)
    """
    folder = await python(runner, ground.spec(*program(text)))
    assert folder == tempfile.gettempdir() or not os.path.exists(folder)
    assert not ground.leftovers()
    assert (ground.work / "file").exists()


async def test_temporary_files_of_others_are_not_touched(ground: Ground, runner: ConfinedCommands) -> None:
    with tempfile.NamedTemporaryFile() as other:
        text = f"print(tried(lambda: open({other.name!r}, 'r+')), tried(lambda: os.unlink({other.name!r})))"
        assert await python(runner, ground.spec(*program(text))) == "False False"
        assert Path(other.name).exists()


async def test_a_file_has_a_limit(ground: Ground, runner: ConfinedCommands) -> None:
    """In the workspace and for temporary files."""
    for folder in (".", "$TMPDIR"):
        text = f"head -c 3000000 /dev/zero > {folder}/large; echo $?; stat -c %s {folder}/large"
        code, output = await ended(await runner.start(ground.spec("sh", "-c", text, file_bytes=1_000_000)))
        *_, size = output.split()
        assert code == 0
        assert 900_000 < int(size) <= 1_000_000


async def test_what_a_killed_launcher_left_goes(ground: Ground, runner: ConfinedCommands) -> None:
    left = Path(tempfile.mkdtemp(prefix=f"orchestrator-{ground.name}-"))
    (left / "a").mkdir()
    ground.runner(Confinement("nothing"))
    assert not left.exists()


# --- other processes, and the network -----------------------------------------------------


async def test_it_reaches_no_process_outside(ground: Ground, runner: ConfinedCommands) -> None:
    text = f"""
        PTRACE_ATTACH, daemon, launcher = 16, {os.getpid()}, os.getppid()
        libc = ctypes.CDLL(None)
        print(
            tried(lambda: os.kill(daemon, 0)),
            tried(lambda: os.kill(launcher, signal.SIGKILL)) and launcher != 1,
            libc.ptrace(PTRACE_ATTACH, daemon, 0, 0) == 0,
            *(tried(lambda: open(f"/proc/{{daemon}}/{{name}}", "rb").read(1)) for name in ("mem", "environ", "maps")),
            tried(lambda: os.listdir(f"/proc/{{daemon}}/root")),
            tried(lambda: os.readlink(f"/proc/{{daemon}}/fd/0")),
        )
    """
    assert await python(runner, ground.spec(*program(text))) == "False False False False False False False False"


@pytest.mark.parametrize("network", [False, True])
async def test_the_network_is_there_if_it_may_be(ground: Ground, runner: ConfinedCommands, network: bool) -> None:
    if landlock.abi() < 4:
        pytest.skip("the kernel's Landlock knows nothing of TCP")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        text = f"print(tried(lambda: socket.create_connection(('127.0.0.1', {listening.getsockname()[1]}))))"
        assert await python(runner, ground.spec(*program(text), network=network)) == str(network)


async def test_the_daemons_socket(ground: Ground, runner: ConfinedCommands, confinement: Confinement) -> None:
    """Nothing takes its place; Landlock knows nothing of such sockets, and says so."""
    path = str(ground.state / "socket")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        text = f"""
            path = {path!r}
            print(
                tried(lambda: os.unlink(path)),
                tried(lambda: os.rename(path, "moved")),
                tried(lambda: socket.socket(socket.AF_UNIX).bind(path + "2")),
                tried(lambda: socket.socket(socket.AF_UNIX).connect(path)),
            )
        """
        command = await runner.start(ground.spec(*program(text)))
        _, output = await ended(command)
    closed = confinement.by != "landlock"
    assert output == f"False False False {not closed}\n"
    assert closed or "Unix sockets" in command.confined_by


# --- what there is to confine it with -----------------------------------------------------


async def test_without_either_it_says_why(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(ground.work))
    monkeypatch.setattr(landlock, "LEAST_ABI", 1000)
    runner = ground.runner(find_confinement())
    assert runner.health == "nothing: no Landlock: this system has none; bubblewrap is not installed"
    command = await runner.start(ground.spec("sh", "-c", "cat .env; setsid sleep 600 &"))
    assert await ended(command) == (0, "KEY=secret")
    assert command.confined_by.startswith(runner.health)


def test_a_bubblewrap_that_does_not_work(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a system allows no namespaces to those without privileges."""
    (ground.work / "bwrap").write_text("#!/bin/sh\necho 'no permissions' >&2\nexit 1\n")
    (ground.work / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{ground.work}:{os.defpath}")
    monkeypatch.setattr(namespaces_module, "__file__", str(ground.work / "nothing"))
    found = find_confinement()
    assert found.by == landlock_alone().by
    assert found.lacking.startswith("namespaces do not work here (")
    assert found.lacking.endswith("; bubblewrap does not work here (no permissions)")
