"""Landlock: what the kernel keeps a thread, or a process, from doing to files, whatever our own code lets through.

A second belt beside `confine.py`. It holds for the thread that puts it on and for what that starts, for good. The
daemon's own thread never does: reviewers, checks and plugins start from it, and may write where their owner may.
Standard library only: `command_launcher.py` uses it, too.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""The same on every processor that Landlock runs on."""

_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVS = 38
_DROP_CAPABILITY = 24
_CAPABILITY_VERSION = 0x20080522

LEAST_ABI = 2
"""The one before forbids every rename from one folder to another."""

_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_REMOVE = 1 << 4 | 1 << 5
_MAKE = 0b1111111 << 6
_REFER = 1 << 13
_TRUNCATE = 1 << 14  # since ABI 3
_TCP = 0b11  # since ABI 4: bind, connect
_SCOPED = 0b11  # since ABI 6: abstract sockets of others, signals to them
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
"""What may be allowed of a single file, too."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def write_only_beneath(root: int) -> None:
    """This thread makes, changes, renames and removes files below a directory only. Raises OSError without Landlock."""
    version = abi()
    writes = _writes(version)
    _restrict(_Ruleset(writes, 0, 0), [(root, writes)])


def compute_only() -> None:
    """This process changes no file, starts no program, reaches nobody by TCP or signal. Raises OSError as above."""
    version = abi()
    _restrict(_Ruleset(_writes(version) | _EXECUTE, _tcp(version), _scoped(version)), [])


def run_command_only(writable: Iterable[str], readable: Iterable[str] | None, *, network: bool) -> None:
    """This process changes files below some paths only, and reads those below others (None: all). Raises as above.

    It traces, and signals, only what it starts itself. What is writable is readable. Names can always be listed.
    Of root's privileges it has none: one of them would show it the memory map and the variables of others.
    """
    version = abi()
    writes, reads = _writes(version), 0 if readable is None else _READ_FILE
    allowed = [*((path, writes | reads) for path in writable), *((path, reads) for path in readable or ())]
    ruleset = _Ruleset(writes | reads, 0 if network else _tcp(version), _scoped(version))
    _restrict(ruleset, _opened(allowed))
    _drop_capabilities()


def _opened(allowed: Iterable[tuple[str, int]]) -> Iterator[tuple[int, int]]:
    for path, rights in allowed:
        try:
            handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # gone since it was listed
        try:
            yield handle, rights if stat.S_ISDIR(os.fstat(handle).st_mode) else rights & _OF_FILES
        finally:
            os.close(handle)


def why_not(error: OSError) -> str:
    """Why Landlock can't be had, as a person may act on it."""
    if error.errno == errno.ENOSYS:
        return "this system has none"
    if error.errno == errno.EOPNOTSUPP:
        return "the kernel has it, switched off: `lsm=` of its command line does not name it"
    return f"the system refused it ({error.strerror})"


def _writes(version: int) -> int:
    return _WRITE_FILE | _REMOVE | _MAKE | _REFER | (_TRUNCATE if version >= 3 else 0)


def _drop_capabilities() -> None:
    for number in range(64):
        _LIBC.prctl(_DROP_CAPABILITY, *map(ctypes.c_ulong, (number, 0, 0, 0)))  # refused to those who have none
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    if _LIBC.capset(header, none) != 0:
        raise _error()


def _tcp(version: int) -> int:
    return _TCP if version >= 4 else 0


def _scoped(version: int) -> int:
    return _SCOPED if version >= 6 else 0


def abi() -> int:
    """What of Landlock the kernel has. Raises OSError where it has none, or too little."""
    if not sys.platform.startswith("linux"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    version = _called(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    if version < LEAST_ABI:
        raise OSError(errno.ENOSYS, "Landlock is too old")
    return version


def _restrict(ruleset: _Ruleset, rules: Iterable[tuple[int, int]]) -> None:
    """`rules`: a file or directory by its handle, and what is allowed below it."""
    made = _called(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(ctypes.sizeof(ruleset)), ctypes.c_uint32(0))
    try:
        for handle, allowed in rules:
            rule = _Beneath(allowed, handle)
            _called(_ADD_RULE, ctypes.c_int(made), ctypes.c_int(_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0))
        if _LIBC.prctl(_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0))) != 0:
            raise _error()
        _called(_RESTRICT_SELF, ctypes.c_int(made), ctypes.c_uint32(0))
    finally:
        os.close(made)


_LIBC = ctypes.CDLL(None, use_errno=True)


def _called(number: int, *arguments: object) -> int:
    answer = int(_LIBC.syscall(ctypes.c_long(number), *arguments))
    if answer < 0:
        raise _error()
    return answer


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
