"""Every call that is not in the tables is refused, by the filter and by the kernel."""

from __future__ import annotations

import platform
import re
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from pdpp_kernel.system.system_calls import (
    ALLOWED,
    ALLOWED_WITH,
    ASKING,
    MACHINES,
    OPENING,
    filter_program,
)

LINUX = sys.platform == "linux" and platform.machine() in MACHINES
REFUSED, PASSED = 0x00050001, 0x7FFF0000
MOST_NUMBERS = 1024  # the kernel of 2026 knows fewer than 480
ADDED_ELSEWHERE = 0x40000000  # where the numbers of x32 begin

NAMES = ("ioctl", "fcntl", "open", "openat", "prlimit64")
# Arguments by name of the call, and what becomes of it.
CONDITIONS = [
    ("ioctl", (0, 0x5401), PASSED),
    ("ioctl", (0, 0x5412), REFUSED),  # put letters into a terminal (TIOCSTI)
    ("ioctl", (0, 0x541C), REFUSED),  # copy and paste of a console (TIOCLINUX)
    ("ioctl", (0, 0), REFUSED),
    ("fcntl", (0, 1030), PASSED),
    ("fcntl", (0, 8), REFUSED),  # whom to send a signal (F_SETOWN)
    ("fcntl", (0, 1024), REFUSED),  # a lease on a file of others (F_SETLEASE)
    ("open", (0, 0), PASSED),
    ("open", (0, 0o2000000), PASSED),
    ("open", (0, 1), REFUSED),
    ("openat", (0, 0, 0o100), REFUSED),
    ("openat", (0, 0, 0o1000), REFUSED),
    ("openat", (0, 0, 0o20200002), REFUSED),  # a file without a name (O_TMPFILE)
    ("openat", (0, 0, 0o2200000), PASSED),
    ("prlimit64", (0, 7, 0, 4096), PASSED),
    ("prlimit64", (1, 7, 0, 4096), REFUSED),
    ("prlimit64", (0, 7, 4096, 0), REFUSED),
    ("prlimit64", (0, 7, 1 << 32, 0), REFUSED),
]


def answered(program: bytes, machine: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """What a filter of the kernel answers to a call (linux/seccomp.h, struct seccomp_data)."""
    call = struct.pack("<iIQ6Q", number, machine, 0, *arguments, *[0] * (6 - len(arguments)))
    code = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    at = word = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        match operation:
            case 0x20:
                (word,) = struct.unpack_from("<I", call, value)
            case 0x15:
                at += if_true if word == value else if_false
            case 0x35:
                at += if_true if word >= value else if_false
            case 0x45:
                at += if_true if word & value else if_false
            case _:
                assert operation == 0x06
                return value


def allowed_numbers(column: int) -> set[int]:
    known = [numbers[column] for numbers in ALLOWED.values()]
    return {number for number in known if number is not None}


def conditional_numbers(column: int) -> dict[str, int]:
    tables = {**ALLOWED_WITH, **OPENING, **ASKING}
    found = {name: numbers[column] for name, (numbers, *_) in tables.items()}
    return {name: number for name, number in found.items() if number is not None}


@pytest.mark.parametrize("name", MACHINES)
def test_the_filter_lets_through_what_is_listed_and_nothing_else(name: str) -> None:
    column, machine = MACHINES[name]
    program = filter_program(column, machine)
    listed, conditional = allowed_numbers(column), set(conditional_numbers(column).values())
    assert not listed & conditional
    for number in set(range(MOST_NUMBERS)) - conditional:
        expected = PASSED if number in listed else REFUSED
        assert answered(program, machine, number) == expected, number
        assert answered(program, machine, number + ADDED_ELSEWHERE) == REFUSED
        for other in {each for _, each in MACHINES.values()} - {machine} | {0x40000003}:
            assert answered(program, other, number) == REFUSED


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "arguments", "answer"), CONDITIONS)
def test_arguments_decide_where_they_can_do_harm(
    machine: str, name: str, arguments: tuple[int, ...], answer: int
) -> None:
    column, mark = MACHINES[machine]
    numbers = conditional_numbers(column)
    assert set(numbers) <= set(NAMES)
    if name in numbers:
        program = filter_program(column, mark)
        assert answered(program, mark, numbers[name], arguments) == answer


# Terminals (asm-generic/ioctls.h): TCGETS, FIONCLEX, FIOCLEX; files (linux/fcntl.h): F_DUPFD to
# F_SETLKW, and F_DUPFD_CLOEXEC.
COMMANDS = {"ioctl": {0x5401, 0x5450, 0x5451}, "fcntl": {*range(8), 1030}}
READABLE = 0o2200000 | 0o4000 | 0o400000  # O_CLOEXEC, O_DIRECTORY; O_NONBLOCK, O_NOFOLLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", COMMANDS)
def test_of_commands_to_files_a_few_are_let_through(machine: str, name: str) -> None:
    column, mark = MACHINES[machine]
    program, number = filter_program(column, mark), conditional_numbers(column)[name]
    tried = {*range(2048), *range(0x5400, 0x5500)}
    passed = {each for each in tried if answered(program, mark, number, (0, each)) == PASSED}
    assert passed == COMMANDS[name]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "place"), [("open", 1), ("openat", 2)])
def test_a_file_is_opened_without_the_flags_that_change_it(
    machine: str, name: str, place: int
) -> None:
    column, mark = MACHINES[machine]
    number = conditional_numbers(column).get(name)
    if number is None:
        return
    program = filter_program(column, mark)
    flags = [1 << bit for bit in range(22)]
    arguments = {flag: (*[-1 & 2**64 - 1] * place, flag | READABLE) for flag in flags}
    refused = {f for f in flags if answered(program, mark, number, arguments[f]) == REFUSED}
    assert refused == {0o1, 0o2, 0o100, 0o1000}  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("place", range(6))
def test_limits_are_asked_for_of_itself_and_not_set(machine: str, place: int) -> None:
    column, mark = MACHINES[machine]
    program, number = filter_program(column, mark), conditional_numbers(column)["prlimit64"]
    expected = {0: (REFUSED, PASSED), 2: (REFUSED, REFUSED)}.get(place, (PASSED, PASSED))
    for bit, answer in zip((31, 32), expected, strict=True):
        arguments = (*[0] * place, 1 << bit)
        assert answered(program, mark, number, arguments) == answer


# Breakpoints of the kernel's own tracing return by these, past any filter; made anywhere else, such
# a call does nothing but fail, or end its process (linux/kernel/seccomp.c).
OF_BREAKPOINTS = {"x86_64": (335, 336), "aarch64": ()}
EVERY_OTHER_CALL = """
import ctypes, errno, sys
from pdpp_kernel.system.confinement import confine, LIMITS
call = ctypes.CDLL(None, use_errno=True).syscall
numbers = map(int, sys.argv[1:])
assert "using the network" not in confine(LIMITS)
wrong = []
for number in numbers:
    ctypes.set_errno(0)
    if call(number, 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != errno.EPERM:
        wrong.append(number)
print(wrong)
"""


def made(numbers: set[int]) -> subprocess.CompletedProcess[str]:
    """Make these calls in a confined process, which prints those that were not refused."""
    command = [sys.executable, "-c", EVERY_OTHER_CALL, *map(str, numbers)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


@pytest.mark.skipif(not LINUX, reason="only Linux refuses calls to a process that asks for it")
def test_the_kernel_refuses_every_other_call_of_its_table() -> None:
    column, _ = MACHINES[platform.machine()]
    own = set(OF_BREAKPOINTS[platform.machine()])
    allowed = allowed_numbers(column) | set(conditional_numbers(column).values())
    told = made(set(range(MOST_NUMBERS)) - allowed - own)
    assert told.stdout.strip() == "[]", told.stderr
    for number in own:
        told = made({number})
        assert told.returncode == -signal.SIGILL or told.stdout.strip() == f"[{number}]"


HEADERS = (
    ("x86_64", Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")),
    ("aarch64", Path("/usr/include/asm-generic/unistd.h")),
)
DEFINED = re.compile(r"#define __NR(?:3264)?_(\w+)\s+(\d+|__NR3264_(\w+))")


def numbers_of(header: Path) -> dict[str, int]:
    """The numbers that a header of the kernel gives calls; some by the number of another name."""
    lines = DEFINED.findall(header.read_text(encoding="utf-8"))
    numbers = {name: int(value) for name, value, other in lines if not other}
    return numbers | {name: numbers[other] for name, _, other in lines if other in numbers}


@pytest.mark.parametrize(("machine", "header"), HEADERS)
def test_each_call_has_the_number_of_the_kernel_s_headers(machine: str, header: Path) -> None:
    if not header.exists():
        pytest.skip("the headers of the kernel are not here (Debian's `linux-libc-dev`)")
    numbers, column = numbers_of(header), MACHINES[machine][0]
    listed = {name: both[column] for name, both in ALLOWED.items() if both[column] is not None}
    listed |= conditional_numbers(column)
    assert listed == {name: numbers[name] for name in listed}
