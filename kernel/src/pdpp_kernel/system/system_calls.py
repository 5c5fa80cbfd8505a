"""The system calls that a confined process may still make, and the filter that refuses all others.

A call that is not in these tables is refused, also one that a later kernel brings.
Source: the kernel's `Documentation/userspace-api/seccomp_filter.rst`; numbers from its headers.
"""

from __future__ import annotations

import ctypes
import platform
import struct

# Each call with its numbers for x86_64 and for aarch64 (None: there is none).  None of them reaches
# the network, another process, or a file for writing; those of Landlock only take more away.
Numbers = tuple[int, int | None]
ALLOWED: dict[str, Numbers] = {
    # the pipes and files that are open, and looking at others
    "read": (0, 63),
    "write": (1, 64),
    "lseek": (8, 62),
    "close": (3, 57),
    "readv": (19, 65),
    "writev": (20, 66),
    "pread64": (17, 67),
    "dup": (32, 23),
    "dup2": (33, None),
    "dup3": (292, 24),
    "stat": (4, None),
    "fstat": (5, 80),
    "lstat": (6, None),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "getdents64": (217, 61),
    "getcwd": (79, 17),
    # memory
    "brk": (12, 214),
    "mmap": (9, 222),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "mprotect": (10, 226),
    "madvise": (28, 233),
    # its own time and signals
    "setitimer": (38, 103),
    "getitimer": (36, 102),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "futex": (202, 98),
    "sched_yield": (24, 124),
    # what it is and where
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getppid": (110, 173),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "getrusage": (98, 165),
    "getrlimit": (97, 163),
    "sched_getaffinity": (204, 123),
    "getcpu": (309, 168),
    "sysinfo": (99, 179),
    "uname": (63, 160),
    "getrandom": (318, 278),
    # less still, and the end
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
# Calls of which the argument of that place decides: one of these values.
ALLOWED_WITH: dict[str, tuple[Numbers, int, tuple[int, ...]]] = {
    # is this a terminal (TCGETS); inherit it or not (FIONCLEX, FIOCLEX)
    "ioctl": ((16, 29), 1, (0x5401, 0x5450, 0x5451)),
    # duplicate, flags, and locks, which SQLite asks for; not who is sent a signal
    "fcntl": ((72, 25), 1, (0, 1, 2, 3, 4, 5, 6, 7, 1030)),
}
# Opening is refused where its flags, the argument of that place, ask for more than reading.
OPENING: dict[str, tuple[Numbers, int]] = {"open": ((2, None), 1), "openat": ((257, 56), 2)}
_MORE_THAN_READING = 0o1 | 0o2 | 0o100 | 0o1000  # write, read and write, create, cut
# Limits may be asked for, of this process, and not set: these words of the arguments are 0.
ASKING: dict[str, tuple[Numbers, tuple[int, ...]]] = {"prlimit64": ((302, 261), (0, 4, 5))}

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_OTHER_CALLS_OF_X86 = 0x40000000  # the numbers of x32 begin here

# Words of the kernel's packet filter (linux/bpf_common.h) and of its answers (linux/seccomp.h).
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _ANSWER = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _NOT_PERMITTED = 0x7FFF0000, 0x00050000 | 1
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16  # where the kernel puts them
_NO_NEW_RIGHTS, _SECCOMP, _FILTER = 38, 22, 2  # of prctl

Instruction = tuple[int, int, int, int]
_REFUSE, _PASS = (_ANSWER, 0, 0, _NOT_PERMITTED), (_ANSWER, 0, 0, _ALLOW)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def refuse_others() -> bool:
    """Have the kernel refuse all other calls from now on; whether it does."""
    control = ctypes.CDLL(None).prctl
    machine = MACHINES.get(platform.machine())
    if machine is None or control(_NO_NEW_RIGHTS, 1, 0, 0, 0):
        return False
    code = filter_program(*machine)
    program = _Program(len(code) // 8, code)
    return control(_SECCOMP, _FILTER, ctypes.byref(program), 0, 0) == 0


def filter_program(column: int, machine: int) -> bytes:
    """The filter for a machine: its calls are in that column of the tables."""
    code: list[Instruction] = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, machine),
        _REFUSE,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _OTHER_CALLS_OF_X86),
        _REFUSE,
    ]
    rules = [(numbers, [_PASS]) for numbers in ALLOWED.values()]
    rules += [(each, _with(argument, values)) for each, argument, values in ALLOWED_WITH.values()]
    rules += [(numbers, _opening(argument)) for numbers, argument in OPENING.values()]
    rules += [(numbers, _asking(words)) for numbers, words in ASKING.values()]
    for numbers, rule in rules:
        if (number := numbers[column]) is not None:
            code += [(_EQUAL, 0, len(rule), number), *rule]
    code.append(_REFUSE)
    return b"".join(struct.pack("<HBBI", *each) for each in code)


def _load_word(word: int) -> Instruction:
    """Half of an argument: 0 is the low half of the first, 1 its high half."""
    return (_LOAD, 0, 0, _FIRST_ARGUMENT + 4 * word)


def _with(argument: int, values: tuple[int, ...]) -> list[Instruction]:
    tests = [(_EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
    return [_load_word(2 * argument), *tests, _REFUSE, _PASS]


def _opening(argument: int) -> list[Instruction]:
    return [_load_word(2 * argument), (_ANY_BIT, 0, 1, _MORE_THAN_READING), _REFUSE, _PASS]


def _asking(words: tuple[int, ...]) -> list[Instruction]:
    rule: list[Instruction] = [_PASS, _REFUSE]
    for word in reversed(words):
        rule = [_load_word(word), (_EQUAL, 0, len(rule) - 1, 0), *rule]
    return rule
