"""How the launchers of several machines agree on who takes part. They share a store; a round is one
attempt of the job. In each round every node takes a number, the first closes the round when all are
there (or enough, after a last call), and number and count become the node's rank and world."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from datetime import timedelta

from torch.distributed import DistNetworkError, DistStoreError, PrefixStore, Store, TCPStore


@dataclass
class Round:
    """What a node knows of a round."""

    number: int
    rank: int
    size: int


def _is_local(host: str) -> bool:
    if host in ("localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()):
        return True
    try:
        own = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)}
        return bool(own & {info[4][0] for info in socket.getaddrinfo(host, None)})
    except OSError:
        return False


def open_store(host: str, port: int, is_host: bool | None, timeout: float) -> TCPStore:
    """The store at host:port, served by this process where it is the host. Where nobody said who
    is, the first process on that machine is."""
    time_left = timedelta(seconds=timeout)
    if is_host or (is_host is None and _is_local(host)):
        try:
            return TCPStore(host, port, None, True, time_left, wait_for_workers=False)
        except DistNetworkError:
            if is_host:
                raise
    return TCPStore(host, port, None, False, time_left, wait_for_workers=False)


class Nodes:
    """The launchers of one job, found through a store."""

    def __init__(
        self,
        store: TCPStore,
        run_id: str,
        min_nodes: int,
        max_nodes: int,
        node_rank: int | None = None,
        join_timeout: float = 600,
        last_call: float = 30,
    ) -> None:
        self.address = (store.host, store.port)
        self._served = store
        self._store: Store = PrefixStore(f"torchelastic/{run_id}", store)
        self._min, self._max, self._node_rank = min_nodes, max_nodes, node_rank
        self._join_timeout, self._last_call = join_timeout, last_call

    def current_round(self) -> int:
        """The number of the round that nodes should be in."""
        return self._store.add("round", 0)

    def next_round(self) -> Round:
        """Joins the present round; returns when it is closed."""
        deadline = time.monotonic() + self._join_timeout
        while True:
            number = self.current_round()
            index = self._store.add(f"{number}/joined", 1) - 1
            if index == 0:
                self._close(number, deadline)
            size = self._size_of(number, deadline)
            if index < size:
                rank = index if self._node_rank is None else self._node_rank
                return Round(number, rank, size)
            if size >= self._max:
                raise RuntimeError(f"the job has its {self._max} nodes already")
            # Too late for this round: all meet again in the next.
            self.request_restart(number)

    def _size_of(self, number: int, deadline: float) -> int:
        left = max(deadline - time.monotonic(), 0.001)
        try:
            self._store.wait([f"{number}/size"], timedelta(seconds=left))
        except DistStoreError as error:
            joined = self._store.add(f"{number}/joined", 0)
            raise TimeoutError(
                f"the rendezvous of {self._min} to {self._max} nodes was not complete after "
                f"{self._join_timeout} s: {joined} joined"
            ) from error
        return int(self._store.get(f"{number}/size"))

    def _close(self, number: int, deadline: float) -> None:
        enough_since = None
        while True:
            joined = self._store.add(f"{number}/joined", 0)
            now = time.monotonic()
            if joined >= self._min and enough_since is None:
                enough_since = now
            called = enough_since is not None and now - enough_since >= self._last_call
            if joined >= self._max or called:
                self._store.set(f"{number}/size", str(min(joined, self._max)))
                return
            if now > deadline:
                return
            time.sleep(0.01)

    def request_restart(self, number: int) -> None:
        """Ends a round for all nodes."""
        if self._store.add(f"{number}/ended", 1) == 1:
            self._store.add("round", 1)

    def report_end(self, number: int, failed: bool) -> None:
        """Says that this node's workers ended for good."""
        self._store.add(f"{number}/{'failed' if failed else 'succeeded'}", 1)

    def has_failed(self, number: int) -> bool:
        """Whether a node gave up."""
        return self._store.add(f"{number}/failed", 0) > 0

    def all_succeeded(self, number: int, size: int) -> bool:
        """Whether every node's workers ended well."""
        return self._store.add(f"{number}/succeeded", 0) >= size
