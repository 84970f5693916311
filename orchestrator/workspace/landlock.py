"""Landlock: what the kernel keeps a thread, or a process, from doing to files, whatever our own code lets through.

A second belt beside `confine.py`. It holds for the thread that puts it on and for what that starts, for good. The
daemon's own thread never does: reviewers, checks and plugins start from it, and may write where their owner may.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""The same on every processor that Landlock runs on."""

_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVS = 38

LEAST_ABI = 2
"""The one before forbids every rename from one folder to another."""

_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_REMOVE = 1 << 4 | 1 << 5
_MAKE = 0b1111111 << 6
_REFER = 1 << 13
_TRUNCATE = 1 << 14  # since ABI 3
_TCP = 0b11  # since ABI 4: bind, connect
_SCOPED = 0b11  # since ABI 6: abstract sockets of others, signals to them


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def write_only_beneath(root: int) -> None:
    """This thread makes, changes, renames and removes files below a directory only. Raises OSError without Landlock."""
    abi = _abi()
    writes = _writes(abi)
    _restrict(_Ruleset(writes, 0, 0), _Beneath(writes, root))


def compute_only() -> None:
    """This process changes no file, starts no program, reaches nobody by TCP or signal. Raises OSError as above."""
    abi = _abi()
    _restrict(_Ruleset(_writes(abi) | _EXECUTE, _TCP if abi >= 4 else 0, _SCOPED if abi >= 6 else 0), None)


def why_not(error: OSError) -> str:
    """Why Landlock can't be had, as a person may act on it."""
    if error.errno == errno.ENOSYS:
        return "this system has none"
    if error.errno == errno.EOPNOTSUPP:
        return "the kernel has it, switched off: `lsm=` of its command line does not name it"
    return f"the system refused it ({error.strerror})"


def _writes(abi: int) -> int:
    return _WRITE_FILE | _REMOVE | _MAKE | _REFER | (_TRUNCATE if abi >= 3 else 0)


def _abi() -> int:
    if not sys.platform.startswith("linux"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    abi = _called(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    if abi < LEAST_ABI:
        raise OSError(errno.ENOSYS, "Landlock is too old")
    return abi


def _restrict(ruleset: _Ruleset, rule: _Beneath | None) -> None:
    made = _called(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(ctypes.sizeof(ruleset)), ctypes.c_uint32(0))
    try:
        if rule is not None:
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
