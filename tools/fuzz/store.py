"""Sends mutated and cut requests to the port of a TCPStore in another process while many clients
use it, and checks that it lives, answers all of them, and does not grow.
`tools/fuzz/store.py --messages 100000 --clients 1000` prints a line per tenth and exits with 1 when
the server ended, a client was not served, or its memory grew by more than 64 MiB."""

from __future__ import annotations

import argparse
import random
import resource
import socket
import struct
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist

GROWTH = 64 << 20
_SERVER = """
import sys
import torch.distributed as dist
store = dist.TCPStore("localhost", 0, None, True)
print(store.port, flush=True)
sys.stdin.read()
"""
_HELLO = b"\x00" + struct.pack("<I", 0x3C85F7CE)


def _text(value: bytes) -> bytes:
    return struct.pack("<q", len(value)) + value


def requests() -> list[bytes]:
    """One valid request of each command that answers at once."""
    key, value = _text(b"/k"), _text(b"value")
    keys = struct.pack("<q", 2) + key + key
    return [
        b"\x01" + key + value,
        b"\x02" + key + value + value,
        b"\x03" + struct.pack("<q", 1) + key,
        b"\x04" + key + struct.pack("<q", 1),
        b"\x05" + keys,
        b"\x06" + struct.pack("<q", 1) + keys,
        b"\x07",
        b"\x0a" + struct.pack("<q", 1) + keys,
        b"\x0b" + keys + keys,
        b"\x0d" + b"abcd",
        b"\x10" + key,
    ]


def mutated(choose: random.Random) -> bytes:
    """Some requests after a greeting, with bytes changed, put in, or cut off."""
    message = bytearray(_HELLO + b"".join(choose.choices(requests(), k=choose.randint(1, 4))))
    for _ in range(choose.randrange(5)):
        message[choose.randrange(len(message))] = choose.choice((0, 1, 127, 128, 255, None)) or (
            choose.randrange(256)
        )
    if choose.random() < 0.2:
        at = choose.randrange(len(message))
        message[at:at] = choose.randbytes(choose.randint(1, 64))
    if choose.random() < 0.3:
        del message[choose.randrange(len(message)) :]
    return bytes(message)


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


def attack(port: int, message: bytes) -> None:
    """Sends it, and leaves at once or reads what comes."""
    with socket.create_connection(("localhost", port), timeout=20) as hostile:
        try:
            hostile.sendall(message)
        except (BrokenPipeError, ConnectionResetError):
            return  # the server may end a connection in the middle of nonsense


def run(messages: int, clients: int, seed: int) -> bool:
    """Whether the server stood it."""
    choose = random.Random(seed)
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        port = int(server.stdout.readline())
        limit = timedelta(seconds=60)
        friends = [dist.TCPStore("localhost", port, None, False, limit) for _ in range(clients)]
        for i, friend in enumerate(friends):
            friend.set(f"own{i}", str(i))
        before, grown = resident(server.pid), 0
        for count in range(1, messages + 1):
            attack(port, mutated(choose))
            friend = choose.randrange(clients)
            if count % 10 == 0 and friends[friend].get(f"own{friend}") != str(friend).encode():
                print(f"client {friend} got another's value after {count} messages")
                return False
            if count % max(messages // 10, 1) == 0:
                grown = resident(server.pid) - before
                print(f"{count} messages, server grew by {grown >> 10} KiB", flush=True)
        for i, friend in enumerate(friends):
            if friend.get(f"own{i}") != str(i).encode():
                print(f"client {i} was not served at the end")
                return False
        print(f"{clients} clients served, {friends[0].num_keys()} keys")
        return server.poll() is None and grown < GROWTH
    finally:
        server.kill()
        server.wait()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * args.clients)), hard))
    ok = run(args.messages, args.clients, args.seed)
    print("ok" if ok else "FAILED")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
