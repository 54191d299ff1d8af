"""Drop a process's rights before it reads untrusted bytes.

POSIX limits processor time, file size and open files, Linux also memory. Seccomp (x86_64, aarch64) refuses system
calls; Landlock limits reading to code and fonts.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import logging
import os
import platform
import resource
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

GUARDS = ("memory", "capabilities", "files", "system calls")
"""Protections of :func:`confine_process` besides the limits that every system has."""
_PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION_3 = 0x20080522
_OPEN_FILES = 64
_NICENESS = 5

# Refused system calls, with their numbers on x86_64 and on aarch64.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # network and local sockets
    "socket": (41, 198),
    "connect": (42, 203),
    "accept": (43, 202),
    "accept4": (288, 242),
    "bind": (49, 200),
    "listen": (50, 201),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    # other programs and processes
    "execve": (59, 221),
    "execveat": (322, 281),
    "fork": (57, None),
    "vfork": (58, None),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    # changes of the process's own limits
    "setrlimit": (160, 164),
    "prlimit64": (302, 261),
    "setpriority": (141, 140),
    # writing to disk
    "creat": (85, None),
    "truncate": (76, 45),
    "ftruncate": (77, 46),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "rmdir": (84, None),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "memfd_create": (319, 279),
    # rarely used parts of the kernel
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
}
# The filter reports these calls as not implemented. So the C library uses older calls instead, whose arguments the
# filter can check.
_NOT_THERE = {"clone3": (435, 435), "openat2": (437, 437)}
_CLONE = (56, 220)
_CLONE_THREAD = 0x10000
# System calls on x86_64 and aarch64: number, and index of the argument with the flags. aarch64 has no `open`.
_OPEN = ((2, 1), None)
_OPENAT = ((257, 2), (56, 2))
# System calls that asyncio needs, on x86_64 and aarch64: their numbers, the index of an argument, and its only value.
_ONLY_WITH = (((53, 199), 0, socket.AF_UNIX), ((44, 206), 4, 0))
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_BENEATH = 1
_EVERY_ACCESS = (1 << 13) - 1
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_PROJECT = Path(__file__).resolve().parents[3]
_READABLE = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "/usr/share/zoneinfo",
    "/usr/share/tesseract-ocr",
    "/usr/share/tesseract",
    "/usr/share/tessdata",
    "/usr/local/share/tessdata",
)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_TRIAL = (
    "import os, sys; sys.path.insert(0, sys.argv[1]); "
    "from retrieval.documents.sandbox.confinement import JobLimits, confine_process; "
    "print(*confine_process(JobLimits(256, 5, 0), os.getppid()), sep=',')"
)
_TRIAL_SECONDS = 60

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The limits of one job. ``seconds`` is wall time, and the default for ``processor_seconds``."""

    memory_mib: int
    seconds: float
    output_bytes: int
    processor_seconds: float | None = None


def confine_process(limits: JobLimits, parent: int) -> list[str]:
    """Drop all rights of this process that the job does not need.

    Return the names of the :data:`GUARDS` that work. Raises: OSError if a limit cannot be set.
    """
    guards = []
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    # If memory runs out, the kernel kills the process with the highest score first.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    seconds = max(1, round(limits.processor_seconds or limits.seconds))
    for kind, soft, hard in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_NOFILE, _OPEN_FILES, _OPEN_FILES),
        (resource.RLIMIT_CPU, seconds, seconds + 1),
    ):
        _set_resource_limit(kind, soft, hard)
    if sys.platform == "linux":
        with open("/proc/self/statm") as file:
            mapped_pages = int(file.read().split()[0])
        memory = mapped_pages * resource.getpagesize() + limits.memory_mib * 2**20
        _set_resource_limit(resource.RLIMIT_AS, memory, memory)
        guards.append("memory")
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
        if libc.capset(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), bytes(24)) == 0:
            guards.append("capabilities")
        # The filter refuses the calls that Landlock needs, so Landlock comes first.
        if _restrict_file_access(libc):
            guards.append("files")
        if _filter_system_calls(libc):
            guards.append("system calls")
    return guards


@functools.cache
def find_missing_guards() -> tuple[str, ...]:
    """Return the guards that do not work on this machine. A separate process tests them once."""
    command = [sys.executable, "-I", "-c", _TRIAL, str(_PROJECT)]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, timeout=_TRIAL_SECONDS, env={}, check=True)
        missing = list_missing_guards(tried.stdout.strip().split(","))
    except (OSError, subprocess.SubprocessError) as error:
        logger.warning("The guards of the sandbox could not be tried: %s", error)
        missing = GUARDS
    if missing:
        logger.warning("DEGRADED: the sandbox lacks these guards on this machine: %s.", ", ".join(missing))
    return missing


def list_missing_guards(working_guards: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in GUARDS if name not in working_guards)


def _set_resource_limit(kind: int, soft: int, hard: int) -> None:
    _, present = resource.getrlimit(kind)
    if present != resource.RLIM_INFINITY:
        soft, hard = min(soft, present), min(hard, present)
    resource.setrlimit(kind, (soft, hard))


def _restrict_file_access(libc: ctypes.CDLL) -> bool:
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    handled = struct.pack("=Q", _EVERY_ACCESS)
    rules = libc.syscall(_LANDLOCK_CREATE, handled, ctypes.c_size_t(len(handled)), 0)
    if rules < 0:
        return False
    code = [path for path in sys.path if path and Path(path).is_dir() and Path(path) != _PROJECT]
    for folder in {*code, *_READABLE, str(_PROJECT / "retrieval")}:
        try:
            descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        except OSError:
            continue
        rule = struct.pack("=Qi", _READ_FILE | _READ_FOLDER, descriptor)
        libc.syscall(_LANDLOCK_ADD, rules, _LANDLOCK_BENEATH, rule, 0)
        os.close(descriptor)
    is_closed = bool(libc.syscall(_LANDLOCK_RESTRICT, rules, 0) == 0)
    os.close(rules)
    return is_closed


def _filter_system_calls(libc: ctypes.CDLL) -> bool:
    found = _ARCHITECTURES.get(platform.machine())
    if found is None or libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    code = _build_seccomp_filter(*found)

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]

    program = Program(len(code) // 8, code)
    return bool(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0)


def _build_seccomp_filter(which: int, architecture: int) -> bytes:
    """Return the seccomp filter as instructions: operation, jump if true, jump if false, operand."""
    refuse = (_RETURN, 0, 0, _REFUSE | errno.EPERM)
    absent = (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)
    allow = (_RETURN, 0, 0, _ALLOW)
    # Offsets in a system call's data: number at 0, architecture at 4, arguments of eight bytes from 16 on.
    code = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), refuse, (_LOAD, 0, 0, 0)]
    if which == 0:  # calls of the x32 interface have other numbers
        code += [(_AT_LEAST, 0, 1, 0x40000000), refuse]
    for calls, answer in ((_REFUSED, refuse), (_NOT_THERE, absent)):
        for numbers in calls.values():
            if (number := numbers[which]) is not None:
                code += [(_EQUAL, 0, 1, number), answer]
    code += [(_EQUAL, 0, 4, _CLONE[which]), (_LOAD, 0, 0, 16), (_ANY_BIT, 0, 1, _CLONE_THREAD), allow, refuse]
    for call in (_OPEN[which], _OPENAT[which]):
        if call is not None:
            number, argument = call
            code += [
                (_EQUAL, 0, 4, number),
                (_LOAD, 0, 0, 16 + 8 * argument),
                (_ANY_BIT, 0, 1, _WRITING),
                refuse,
                allow,
            ]
    for numbers, argument, value in _ONLY_WITH:
        # The filter compares 32 bits at a time: the lower half of an argument, then the upper half.
        code += [
            (_EQUAL, 0, 6, numbers[which]),
            (_LOAD, 0, 0, 16 + 8 * argument),
            (_EQUAL, 0, 3, value),
            (_LOAD, 0, 0, 20 + 8 * argument),
            (_EQUAL, 0, 1, 0),
            allow,
            refuse,
        ]
    code.append(allow)
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
