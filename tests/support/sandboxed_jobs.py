"""Jobs for the tests of the sandbox, well-behaved and other."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import time


def count(file, word):
    data = file.read()
    return {"found": data.count(word.encode())}, data[:10]


def environment(file):
    opened = []
    for descriptor in range(64):
        with contextlib.suppress(OSError):
            os.fstat(descriptor)
            opened.append(descriptor)
    return [dict(os.environ), os.getcwd(), opened], b""


def fail(file):
    raise ValueError("no such thing")


def allocate(file):
    return len(bytearray(10**12)), b""


def fill_memory(file):
    kept = []
    while True:
        kept.append(b"x" * 10**6)


def spin(file):
    while True:
        pass


def sleep(file):
    time.sleep(1000)
    return None, b""


def crash(file):
    ctypes.string_at(1)
    return None, b""


def write_endlessly(file):
    while True:
        os.write(4, b"x" * 65536)


def write_nonsense(file):
    os.write(4, (3).to_bytes(8, "big") + b"{]}")
    os._exit(0)


def wake_itself(file):
    """Bytes through a pair of sockets without a name, as event loops send themselves."""
    ours, theirs = socket.socketpair()
    ours.send(b"x")
    return theirs.recv(1).decode(), b""


def attempts(file, path):
    """Return the result of each attempt to leave: the name of its error, or "done"."""

    def outcome(attempt):
        try:
            attempt()
        except Exception as error:  # noqa: BLE001
            return type(error).__name__
        return "done"

    return {
        "connect": outcome(lambda: socket.create_connection(("127.0.0.1", 80), 1)),
        "local socket": outcome(lambda: socket.socket(socket.AF_UNIX)),
        "pair of another kind": outcome(lambda: socket.socketpair(socket.AF_NETLINK)),
        "pair with an address": outcome(lambda: socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b"x", path)),
        "descriptors": outcome(lambda: socket.send_fds(socket.socketpair()[0], [b"x"], [0])),
        "program": outcome(lambda: subprocess.run(["/bin/true"], check=True)),
        "fork": outcome(os.fork),
        "signal": outcome(lambda: os.kill(os.getppid(), signal.SIGTERM)),
        "write": outcome(lambda: open(path + ".new", "w")),
        "remove": outcome(lambda: os.remove(path)),
        "read": outcome(lambda: open(path).read()),
        "list": outcome(lambda: os.listdir(os.path.dirname(path))),
        "environment of the parent": outcome(lambda: open(f"/proc/{os.getppid()}/environ").read()),
    }, b""
