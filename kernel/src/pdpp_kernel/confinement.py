"""What processes give up for good.

The server gives up an image of its memory, which holds records, passwords and tokens in clear.  A
process that reads strangers' files gives up more, before it opens the first of them.  Everywhere:
the time that one entry may take, and to outlive the process that started it.  On Linux: memory
beyond a bound, and by a filter of system calls the network, new processes, and every change to
files; the filter is the kernel's own (seccomp), needs no rights, and cannot be taken off again.
macOS counts no memory against a process and has no such filter.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from dataclasses import dataclass

MB = 1024 * 1024
# So often a process looks whether the one that started it is still there.
PARENT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What the reader of one entry may take.

    Units: `seconds` of processor time between two steps of reading; `memory_bytes` of the process.
    """

    seconds: float = 10
    memory_bytes: int = 256 * MB


LIMITS = Limits()


def confine(limits: Limits) -> list[str]:
    """Give up what can be given up here; the words name what could not."""
    _end_with(os.getppid())
    sys.dont_write_bytecode = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asked
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    if sys.platform != "linux":
        return ["memory", "network"]
    _lower(resource.RLIMIT_DATA, limits.memory_bytes)
    return [] if _filtered() else ["network"]


_DUMPABLE = 4  # PR_SET_DUMPABLE of linux/prctl.h


def forbid_core_dumps() -> None:
    """Write no image of this process, nor of those it starts; on Linux no other program reads it.

    Source: docs/contract/authorization-server.md 16.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        # Where a program collects dumps (systemd-coredump), the kernel pays no heed to the limit.
        ctypes.CDLL(None).prctl(_DUMPABLE, 0, 0, 0, 0)


def _end_with(parent: int) -> None:
    """End soon after the process that started this one, though it be busy.

    Linux would do it by itself (PR_SET_PDEATHSIG), but at the end of the *thread* that started it:
    those of a pool end while their process goes on.
    """

    def look(*_: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGALRM, look)
    signal.siginterrupt(signal.SIGALRM, False)
    signal.setitimer(signal.ITIMER_REAL, PARENT_SECONDS, PARENT_SECONDS)


def _lower(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(kind, (most, most))


# The calls that are refused, by their numbers for x86_64 and for aarch64 (0: there is none).
_REFUSED = {
    "socket": (41, 198),
    "connect": (42, 203),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "bind": (49, 200),
    "listen": (50, 201),
    "socketpair": (53, 199),
    "io_uring_setup": (425, 425),
    "clone": (56, 220),
    "clone3": (435, 435),
    "fork": (57, 0),
    "vfork": (58, 0),
    "execve": (59, 221),
    "execveat": (322, 281),
    "kill": (62, 129),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bpf": (321, 280),
    "mount": (165, 40),
    "truncate": (76, 45),
    "rename": (82, 0),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "mkdir": (83, 0),
    "mkdirat": (258, 34),
    "rmdir": (84, 0),
    "creat": (85, 0),
    "link": (86, 0),
    "linkat": (265, 37),
    "unlink": (87, 0),
    "unlinkat": (263, 35),
    "symlink": (88, 0),
    "symlinkat": (266, 36),
    "chmod": (90, 0),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "chown": (92, 0),
    "fchown": (93, 55),
    "lchown": (94, 0),
    "fchownat": (260, 54),
    "mknod": (133, 0),
    "mknodat": (259, 33),
    "setxattr": (188, 5),
    "utimensat": (280, 88),
    "openat2": (437, 437),
}
# Opening is refused where its flags, the argument of that number, ask for more than reading.
_OPENING = {"open": ((2, 0), 1), "openat": ((257, 56), 2)}
_MORE_THAN_READING = 0o1 | 0o2 | 0o100 | 0o1000  # write, read and write, create, cut
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_OTHER_CALLS_OF_X86 = 0x40000000  # the numbers of x32 begin here

# Words of the kernel's packet filter (linux/bpf_common.h) and of its answers (linux/seccomp.h).
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _ANSWER = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _NOT_PERMITTED = 0x7FFF0000, 0x00050000 | 1
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16  # where the kernel puts them
_NO_NEW_RIGHTS, _SECCOMP, _FILTER = 38, 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _filtered() -> bool:
    """Have the kernel refuse those calls from now on."""
    control = ctypes.CDLL(None, use_errno=True).prctl
    machine = _MACHINES.get(platform.machine())
    if machine is None or control(_NO_NEW_RIGHTS, 1, 0, 0, 0):
        return False
    code = filter_program(*machine)
    program = _Program(len(code) // 8, code)
    return control(_SECCOMP, _FILTER, ctypes.byref(program), 0, 0) == 0


def filter_program(column: int, machine: int) -> bytes:
    """The filter for a machine: its calls are in that column of the table."""
    refuse, allow = (_ANSWER, 0, 0, _NOT_PERMITTED), (_ANSWER, 0, 0, _ALLOW)
    code = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, machine),
        refuse,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _OTHER_CALLS_OF_X86),
        refuse,
    ]
    for numbers in _REFUSED.values():
        if numbers[column]:
            code += [(_EQUAL, 0, 1, numbers[column]), refuse]
    for numbers, argument in _OPENING.values():
        if numbers[column]:
            flags = _FIRST_ARGUMENT + 8 * argument
            wants_more = (_ANY_BIT, 0, 1, _MORE_THAN_READING)
            code += [(_EQUAL, 0, 4, numbers[column]), (_LOAD, 0, 0, flags), wants_more, refuse]
            code += [allow]
    code += [allow]
    return b"".join(struct.pack("<HBBI", *each) for each in code)
