"""The connections of a worker. It listens on a TCP port and keeps one connection to each worker
that it calls. A frame is a length, a number and pickled bytes; a reply has the number of its
request. Calls run on a pool of threads. A connection that breaks fails the calls that wait for
it."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import socket
import struct
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from torch.distributed import Store
from torch.distributed.rpc.functions import MARK
from torch.futures import Future

_HEAD = struct.Struct("!QQ")
_LOOK = 0.05  # seconds between looks at deadlines


class WorkerInfo(NamedTuple):
    """A worker."""

    name: str
    id: int


def _receive(connection: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = connection.recv(min(count - len(parts), 1 << 20))
        if not part:
            raise ConnectionError("the other side has closed the connection")
        parts += part
    return bytes(parts)


def _frame(connection: socket.socket) -> tuple[int, bytes]:
    length, number = _HEAD.unpack(_receive(connection, _HEAD.size))
    return number, _receive(connection, length)


def _send(connection: socket.socket, lock: threading.Lock, number: int, body: bytes) -> None:
    with lock:
        connection.sendall(_HEAD.pack(len(body), number) + body)


class _Link:
    """The connection to another worker and the calls that wait for replies."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.connection = socket.create_connection(address, timeout=60)
        self.connection.settimeout(None)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lock, self.waiting = threading.Lock(), {}
        self.broken: Exception | None = None
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while True:
                number, body = _frame(self.connection)
                done = self.waiting.pop(number, None)
                if done is not None:
                    done(body, None)
        except (OSError, ConnectionError) as error:
            self.broken = error
            while self.waiting:
                self.waiting.popitem()[1](None, error)


class Agent:
    """This worker's side of all calls."""

    def __init__(
        self, name: str, rank: int, world_size: int, store: Store, timeout: float, threads: int
    ) -> None:
        self.info, self.store, self.world_size = WorkerInfo(name, rank), store, world_size
        self.timeout = timeout
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="rpc")
        self._listener = socket.create_server(("", 0), backlog=128)
        self._links: dict[int, _Link] = {}
        self._lock, self._numbers = threading.Lock(), itertools.count()
        self._deadlines: dict[int, tuple[float, Callable]] = {}
        self._closing = threading.Event()
        self._meet()
        for run in (self._accept, self._watch):
            threading.Thread(target=run, daemon=True).start()

    def _meet(self) -> None:
        """Tells the address and learns those of the others."""
        host = socket.gethostname() if self.world_size > 1 else "localhost"
        try:
            socket.getaddrinfo(host, None)
        except OSError:
            host = "localhost"
        port = self._listener.getsockname()[1]
        self.store.set(f"worker/{self.info.id}", pickle.dumps((self.info.name, host, port)))
        self.workers: dict[str, WorkerInfo] = {}
        self.addresses: dict[int, tuple[str, int]] = {}
        for rank in range(self.world_size):
            name, *address = pickle.loads(self.store.get(f"worker/{rank}"))
            if name in self.workers:
                raise RuntimeError(
                    f"RPC worker name {name} is not unique: ranks {self.workers[name].id} and "
                    f"{rank} have it"
                )
            self.workers[name], self.addresses[rank] = WorkerInfo(name, rank), tuple(address)

    # ---- serving
    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        lock = threading.Lock()
        with contextlib.suppress(OSError, ConnectionError, RuntimeError), connection:
            while True:
                number, body = _frame(connection)

                def reply(result: bytes, number: int = number) -> None:
                    with contextlib.suppress(OSError):  # Nobody is there to take it.
                        _send(connection, lock, number, result)

                self._pool.submit(self._run, body, reply)

    def _run(self, body: bytes, reply: Callable[[bytes], None]) -> None:
        try:
            function, args, kwargs = pickle.loads(body)
            value = function(*args, **kwargs)
            if getattr(function, MARK, False):
                value.add_done_callback(lambda future: self._finish(future.value, reply))
                return
        except Exception as error:
            problem = error

            def fail() -> Any:
                raise problem

            self._finish(fail, reply)
            return
        self._finish(lambda: value, reply)

    def _finish(self, result: Callable[[], Any], reply: Callable[[bytes], None]) -> None:
        try:
            body = pickle.dumps((True, result(), ""))
        except Exception as error:
            text = f"On {self.info}:\n{''.join(traceback.format_exception(error))}"
            try:
                body = pickle.dumps((False, type(error), text))
            except Exception:
                body = pickle.dumps((False, RuntimeError, text))
        reply(body)

    # ---- calling
    def _link(self, rank: int) -> _Link:
        with self._lock:
            link = self._links.get(rank)
            if link is None or link.broken is not None:
                link = self._links[rank] = _Link(self.addresses[rank])
            return link

    def call(
        self, to: WorkerInfo, function: Callable, args: tuple, kwargs: dict, timeout: float
    ) -> Future:
        """Runs a function there; the Future has its value or what it raised."""
        future: Future = Future()
        number = next(self._numbers)
        once = threading.Lock()  # A reply and a timeout may come together: the first counts.

        def done(body: bytes | None, problem: Exception | None) -> None:
            if not once.acquire(blocking=False):
                return
            self._deadlines.pop(number, None)
            if problem is not None:
                future.set_exception(
                    problem
                    if isinstance(problem, TimeoutErrorOfCall)
                    else ConnectionError(f"the call of {function} on {to} failed: {problem}")
                )
                return
            try:
                is_good, value, text = pickle.loads(body)
            except Exception as error:
                is_good, value, text = False, RuntimeError, f"the reply cannot be read: {error}"
            future.set_result(value) if is_good else future.set_exception(_error(value, text))

        body = pickle.dumps((function, args, kwargs))
        if timeout > 0:
            words = f"RPC ran for more than set timeout ({int(timeout * 1000)} ms) and will now be "
            words += f"marked with an error: {function} on {to}"
            late = TimeoutErrorOfCall(words)
            self._deadlines[number] = (time.monotonic() + timeout, lambda: done(None, late))
        if to.id == self.info.id:
            self._pool.submit(self._run, body, lambda reply: done(reply, None))
            return future
        try:
            link = self._link(to.id)
            link.waiting[number] = done
            _send(link.connection, link.lock, number, body)
        except OSError as error:
            done(None, error)
        return future

    def _watch(self) -> None:
        while not self._closing.wait(_LOOK):
            now = time.monotonic()
            for number, (deadline, give_up) in list(self._deadlines.items()):
                if deadline < now:
                    self._deadlines.pop(number, None)
                    give_up()

    # ---- the end
    def leave_together(self, timeout: float) -> None:
        """Waits until all workers want to end. Rank 0 may serve the store and goes last."""
        until = time.monotonic() + timeout if timeout > 0 else None
        for stage in ("ready", "left"):
            self.store.add(stage, 1)
            while (stage == "ready" or self.info.id == 0) and (
                self.store.add(stage, 0) < self.world_size
            ):
                if until is not None and time.monotonic() > until:
                    raise RuntimeError(f"rpc.shutdown: not all workers came in {timeout} s")
                time.sleep(0.01)

    def close(self) -> None:
        """Closes all connections."""
        self._closing.set()
        self._pool.shutdown(wait=True)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for link in self._links.values():
            with contextlib.suppress(OSError):
                link.connection.shutdown(socket.SHUT_RDWR)
            link.connection.close()


class TimeoutErrorOfCall(RuntimeError):
    """A call took longer than it may."""


def _error(kind: type[Exception], text: str) -> Exception:
    """An exception of the kind that was raised there, with the text of there."""
    try:
        return kind(text)
    except Exception:
        return RuntimeError(text)
