"""Namespaces of a command's own: a view of the files, processes, sockets and networks that ends with it.

What `bwrap` does, below our own launcher, so that Landlock can be put on the command besides. A user namespace
without privileges is enough. Standard library only: `command_launcher.py` uses it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PROCESSES, NEW_NETWORK = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_NO_SUID, _NO_DEVICES = 2, 4
_MOUNT_SETATTR, _OF_ALL_BELOW, _HERE = 442, 0x8000, -100
_READ_ONLY = 1
_DIE_WITH_PARENT = 1
_SET_FLAGS, _UP = 0x8914, 1

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}

NOT_STARTED = 127

_RESERVED = 300
"""Numbers of processes that the kernel does not give out again."""

Mounts = Sequence[tuple[str, str]]
"""In order, what comes where. empty: a folder with nothing in it. private: one to write to. read, write: what is there
already, read-only or not, also where a folder above was covered. `FROM` and a path: what is there, read-only. hidden:
a file that can't be read. layers: of a scratch tree, in a folder; the whole is its `tree`."""

FROM = "from "
"""Before the path of what is mounted in place of what is there."""

LAYERS = "userxattr,volatile,lowerdir=delta:../../scratch_base/tree,upperdir=upper,workdir=work"
"""Relative, so that nothing in a path needs to be escaped. volatile: nothing waits for a disk that need not keep it."""

_LIBC = ctypes.CDLL(None, use_errno=True)


def bounds_processes() -> bool:
    """Whether a namespace has a bound of its own for its processes: before Linux 6.14 it is the whole machine's."""
    numbers = os.uname().release.split(".")
    return numbers[0].isdigit() and numbers[1].isdigit() and (int(numbers[0]), int(numbers[1])) >= (6, 14)


def run(
    mounts: Mounts, private_bytes: int, *, processes: int, network: bool, status: int, become: Callable[[], object]
) -> int:
    """The exit code of a command that runs in namespaces of its own, as the first of its session's processes.

    Whatever it started ends with it: with the first process of their namespace the kernel ends all the others.
    There are so many `processes` in it at once, threads counted, where `bounds_processes`.
    `status` is closed here once it runs. Raises OSError before that.
    """
    _die_with_parent()
    user, group = os.getuid(), os.getgid()
    flags = NEW_USER | NEW_MOUNTS | NEW_PROCESSES | NEW_IPC | (0 if network else NEW_NETWORK)
    _call("unshare", flags)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # pathlib takes long to import
            file.write(text)

    def first() -> int:
        """Process 1: it inherits what the command leaves behind."""
        _die_with_parent()
        _mount_all(mounts, private_bytes, processes)
        if not network:
            _start_loopback()
        return _in_child(lambda: NOT_STARTED if become() else 0, status)

    return _in_child(first, status)


def _start_loopback() -> None:
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP))


def _in_child(work: Callable[[], int], status: int) -> int:
    child = os.fork()
    if child == 0:
        code = NOT_STARTED
        try:
            code = work()
        except OSError as error:
            os.write(status, b"%d" % (error.errno or 0))
        finally:
            os._exit(code)
    os.close(status)
    while True:
        ended, how = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(how)
            return code if code >= 0 else 128 - code


def _limit_processes(most: int) -> None:
    """By the numbers there are for them: also root's, whom no other limit binds. /proc is the namespace's own."""
    with open("/proc/sys/kernel/pid_max", "w", encoding="ascii") as file:
        file.write(str(_RESERVED + 1 + most))
    with suppress(OSError), open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
        file.write(str(_RESERVED))  # else those below are used once, for so many more


def _mount_all(mounts: Mounts, private_bytes: int, processes: int) -> None:
    _set_attributes("/", propagation=_PRIVATE)
    _mount_layers(path for kind, path in mounts if kind == "layers")  # while none of them is covered
    places = {
        path: os.open(kind.removeprefix(FROM) if kind.startswith(FROM) else path, os.O_PATH | os.O_CLOEXEC)
        for kind, path in mounts
        if kind in ("read", "write") or kind.startswith(FROM)
    }
    null = os.open(os.devnull, os.O_PATH | os.O_CLOEXEC)
    devices = {name: os.open(f"/dev/{name}", os.O_PATH | os.O_CLOEXEC) for name in DEVICES}
    _mount("proc", "/proc", "proc", _NO_SUID | _NO_DEVICES)
    if bounds_processes():
        _limit_processes(processes)
    _mount_devices(devices)
    _set_attributes("/", add=_READ_ONLY)
    for name in ("shm", "pts"):
        _set_attributes(f"/dev/{name}", take=_READ_ONLY)
    for kind, path in mounts:
        match kind:
            case "empty" | "private":
                os.makedirs(path, exist_ok=True)
                _mount("tmpfs", path, "tmpfs", _NO_SUID | _NO_DEVICES, f"mode=0755,size={private_bytes}")
            case "layers":
                pass
            case "hidden":
                if os.path.lexists(path):  # in a covered folder it is not there
                    _bind(null, path)
                    _set_attributes(path, add=_READ_ONLY | _NO_DEVICES)  # so that opening it fails
            case _:
                _bind(places[path], path)
                _set_attributes(
                    path, add=0 if kind == "write" else _READ_ONLY, take=_READ_ONLY if kind == "write" else 0
                )
    for kind, path in mounts:
        if kind == "empty":
            _set_attributes(path, add=_READ_ONLY, below=False)
    for handle in (null, *places.values(), *devices.values()):
        os.close(handle)


def _mount_layers(folders: Iterable[str]) -> None:
    for folder in folders:
        os.chdir(folder)
        _mount("overlay", "tree", "overlay", _NO_SUID | _NO_DEVICES, LAYERS)
        os.chdir("/")


def _mount_devices(devices: dict[str, int]) -> None:
    """Those that hold nothing of anybody, and terminals of its own: a person's could be read there."""
    _mount("tmpfs", "/dev", "tmpfs", _NO_SUID, "mode=0755")
    for name, handle in devices.items():
        _bind(handle, f"/dev/{name}", file=True)
    for name, target in _LINKS.items():
        os.symlink(target, f"/dev/{name}")
    for name in ("shm", "pts"):
        os.mkdir(f"/dev/{name}", 0o755)
    _mount("tmpfs", "/dev/shm", "tmpfs", _NO_SUID | _NO_DEVICES, "mode=1777")
    _mount("devpts", "/dev/pts", "devpts", _NO_SUID, "newinstance,ptmxmode=0666,mode=620")


def _bind(handle: int, path: str, *, file: bool = False) -> None:
    """What a handle, taken before anything was covered, leads to comes to a path, with all that is mounted below."""
    if file:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    elif not os.path.lexists(path):
        os.makedirs(path)  # in a covered folder
    _mount(f"/proc/self/fd/{handle}", path, None, _BIND | _RECURSIVE)


def _mount(source: str, path: str, kind: str | None, flags: int, options: str | None = None) -> None:
    encoded = (None if text is None else os.fsencode(text) for text in (source, path, kind))
    data = None if options is None else options.encode()
    _call("mount", *encoded, ctypes.c_ulong(flags), data)


def _set_attributes(path: str, *, add: int = 0, take: int = 0, propagation: int = 0, below: bool = True) -> None:
    given = struct.pack("4Q", add, take, propagation, 0)
    flags = ctypes.c_uint(_OF_ALL_BELOW if below else 0)
    size = ctypes.c_size_t(len(given))
    _call("syscall", ctypes.c_long(_MOUNT_SETATTR), ctypes.c_int(_HERE), os.fsencode(path), flags, given, size)


def _die_with_parent() -> None:
    _call("prctl", _DIE_WITH_PARENT, *map(ctypes.c_ulong, (signal.SIGKILL, 0, 0, 0)))


def _call(name: str, *arguments: object) -> None:
    if getattr(_LIBC, name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _change_layers(home: str) -> bool:
    """As `overlay.why_not` has them; whether they are not seen as they should be."""
    os.chdir(f"{home}/tree")
    if {"gone", "kept", "hidden"}.intersection(os.listdir(".")) != {"gone", "kept"}:
        return True
    for name in ("gone", "emptied/gone"):
        os.unlink(name)
    os.rmdir("emptied")
    os.mkdir("emptied")
    with open("kept", "ab") as file:
        file.write(b"2")
    return False


def _tried(homes: Sequence[str]) -> int:
    mounts = [("private", "/tmp"), ("empty", "/run")]
    for home in homes:
        mounts += (("layers", home), ("write", f"{home}/tree"))
    return run(mounts, 4096, processes=16, network=False, status=2, become=lambda: any(map(_change_layers, homes)))


if __name__ == "__main__":  # do they work here? With a folder that has layers: do overlays?
    os._exit(_tried(sys.argv[1:]))
