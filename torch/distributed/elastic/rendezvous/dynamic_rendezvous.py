"""The rendezvous of nodes that come and go. All nodes share one state, kept by a backend that can
compare and set. A node repeats: read the state, ask its operation (join, exit, close, keep alive)
what to change, try to write that. Whoever writes first wins; others read again and decide anew. A
node that stops renewing its heartbeat is dropped by whoever reads next."""

from __future__ import annotations

import logging
import os
import pickle
import socket
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

import torch.distributed as dist
from torch.distributed import Store
from torch.distributed.elastic.events import NodeState, construct_and_record_rdzv_event
from torch.distributed.elastic.rendezvous.api import (
    RendezvousClosedError,
    RendezvousError,
    RendezvousGracefulExitError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStateError,
    RendezvousStoreInfo,
    RendezvousTimeoutError,
)
from torch.distributed.elastic.rendezvous.utils import _delay, _PeriodicTimer

__all__ = [
    "DynamicRendezvousHandler",
    "RendezvousBackend",
    "RendezvousSettings",
    "RendezvousTimeout",
    "Token",
    "create_handler",
]

logger = logging.getLogger(__name__)

Token = Any  # What a backend hands out with a state, and wants back to replace it.

_ROLLBACK_SECONDS = 5  # How long a node that was too late may take to undo its registration.


class RendezvousBackend(ABC):
    """Keeps the state."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the backend."""

    @abstractmethod
    def get_state(self) -> tuple[bytes, Token] | None:
        """The state and its token; None before the first."""

    @abstractmethod
    def set_state(
        self, state: bytes, token: Token | None = None
    ) -> tuple[bytes, Token, bool] | None:
        """Replaces the state of that token; returns the present one, its token, and whether it
        was replaced."""


class RendezvousTimeout:
    """How long a node waits: to join, after the least number of nodes is there, to close, and for
    a heartbeat."""

    _DEFAULTS = {"join": 600, "last_call": 30, "close": 30, "heartbeat": 5}

    def __init__(
        self,
        join: timedelta | None = None,
        last_call: timedelta | None = None,
        close: timedelta | None = None,
        heartbeat: timedelta | None = None,
    ) -> None:
        given = {"join": join, "last_call": last_call, "close": close, "heartbeat": heartbeat}
        self._times: dict[str, timedelta] = {}
        for name, time_ in given.items():
            if time_ is None:
                time_ = timedelta(seconds=self._DEFAULTS[name])
            if time_ <= timedelta(0):
                raise ValueError(
                    f"The {name.replace('_', ' ')} timeout ({time_}) must be positive."
                )
            self._times[name] = time_

    @property
    def join(self) -> timedelta:
        """For a round to become complete."""
        return self._times["join"]

    @property
    def last_call(self) -> timedelta:
        """For further nodes, when the least number is there."""
        return self._times["last_call"]

    @property
    def close(self) -> timedelta:
        """For closing."""
        return self._times["close"]

    @property
    def heartbeat(self) -> timedelta:
        """For one heartbeat to be written."""
        return self._times["heartbeat"]


@dataclass(repr=False, eq=False, frozen=True)
class RendezvousSettings:
    """What all nodes of a job agree on."""

    run_id: str
    min_nodes: int
    max_nodes: int
    timeout: RendezvousTimeout
    keep_alive_interval: timedelta
    keep_alive_max_attempt: int


@dataclass(eq=True, order=True, frozen=True)
class _NodeDesc:
    """A node: where it runs, which process, which handler in it."""

    addr: str
    pid: int
    local_id: int

    def __repr__(self) -> str:
        return f"{self.addr}_{self.pid}_{self.local_id}"


class _NodeDescGenerator:
    """Numbers the handlers of this process."""

    def __init__(self) -> None:
        self._lock, self._next = threading.Lock(), 0

    def generate(self, local_addr: str | None = None) -> _NodeDesc:
        """The description of one more handler."""
        with self._lock:
            number, self._next = self._next, self._next + 1
        return _NodeDesc(local_addr or socket.getfqdn(), os.getpid(), number)


class _RendezvousState:
    """What is shared. Participants have a rank each once the round is complete; nodes of the wait
    list ask for a new round, those of the redundancy list only for a place that becomes free."""

    def __init__(self) -> None:
        self.round = 0
        self.complete = False
        self.deadline: datetime | None = None
        self.closed = False
        self.participants: dict[_NodeDesc, int] = {}
        self.wait_list: set[_NodeDesc] = set()
        self.redundancy_list: set[_NodeDesc] = set()
        self.last_heartbeats: dict[_NodeDesc, datetime] = {}


def _lost_participants(state: _RendezvousState, min_nodes: int) -> None:
    """After participants left: the round is over when none is left, the last call when too few."""
    if not state.participants:
        state.complete = False
        state.round += 1
    elif len(state.participants) < min_nodes:
        state.deadline = None


def _drop_silent_nodes(state: _RendezvousState, settings: RendezvousSettings) -> None:
    """Removes nodes whose last heartbeat is too old."""
    oldest = datetime.utcnow() - settings.keep_alive_interval * settings.keep_alive_max_attempt
    silent = [node for node, seen in state.last_heartbeats.items() if seen < oldest]
    lost = False
    for node in silent:
        logger.warning("node %s gave no sign of life since %s", node, state.last_heartbeats[node])
        del state.last_heartbeats[node]
        lost = state.participants.pop(node, None) is not None or lost
        state.wait_list.discard(node)
        state.redundancy_list.discard(node)
    if lost:
        _lost_participants(state, settings.min_nodes)


class _RendezvousStateHolder(ABC):
    """This node's copy of the state."""

    @property
    @abstractmethod
    def state(self) -> _RendezvousState:
        """The copy; whoever changes it marks it dirty."""

    @abstractmethod
    def sync(self) -> bool | None:
        """Writes the copy where it is dirty, reads the state where it is not. Returns whether it
        was written; None where there was nothing to write."""

    @abstractmethod
    def mark_dirty(self) -> None:
        """The copy was changed."""


class _BackendRendezvousStateHolder(_RendezvousStateHolder):
    """A copy of what a backend keeps. A clean copy is good for cache_duration seconds."""

    def __init__(
        self, backend: RendezvousBackend, settings: RendezvousSettings, cache_duration: int = 1
    ) -> None:
        self._backend, self._settings, self._cache_duration = backend, settings, cache_duration
        self._state, self._token, self._dirty = _RendezvousState(), None, False
        self._read_at: float | None = None

    @property
    def state(self) -> _RendezvousState:
        """The copy."""
        return self._state

    def mark_dirty(self) -> None:
        """The copy was changed."""
        self._dirty = True

    def _is_fresh(self) -> bool:
        if self._cache_duration <= 0 or self._read_at is None:
            return False
        return time.monotonic() - self._read_at <= self._cache_duration

    def sync(self) -> bool | None:
        """Writes or reads."""
        if not self._dirty:
            if not self._is_fresh():
                self._take(self._backend.get_state())
            return None
        written = pickle.dumps(self._state)
        answer = self._backend.set_state(written, self._token)
        if answer is None:
            # The backend does not say what became of it.
            found = self._backend.get_state()
            self._take(found)
            return found is not None and found[0] == written
        bits, token, is_ours = answer
        self._take((bits, token))
        return is_ours

    def _take(self, found: tuple[bytes, Token] | None) -> None:
        if found is not None:
            bits, self._token = found
            try:
                self._state = pickle.loads(bits)
            except Exception as error:
                raise RendezvousStateError(
                    "The rendezvous state is corrupt. See inner exception for details."
                ) from error
            _drop_silent_nodes(self._state, self._settings)
        self._dirty, self._read_at = False, time.monotonic()


class _Action(Enum):
    """What an operation wants done next."""

    KEEP_ALIVE = 1
    ADD_TO_PARTICIPANTS = 2
    ADD_TO_WAIT_LIST = 3
    ADD_TO_REDUNDANCY_LIST = 4
    REMOVE_FROM_PARTICIPANTS = 5
    REMOVE_FROM_WAIT_LIST = 6
    REMOVE_FROM_REDUNDANCY_LIST = 7
    MARK_RENDEZVOUS_COMPLETE = 8
    MARK_RENDEZVOUS_CLOSED = 9
    SYNC = 10
    ERROR_CLOSED = 11
    ERROR_TIMEOUT = 12
    FINISH = 13


class _RendezvousContext:
    """What an operation decides from."""

    def __init__(
        self, node: _NodeDesc, state: _RendezvousState, settings: RendezvousSettings
    ) -> None:
        self.node, self.state, self.settings = node, state, settings


def _needs_heartbeat(ctx: _RendezvousContext) -> bool:
    last = ctx.state.last_heartbeats.get(ctx.node)
    return last is not None and last <= datetime.utcnow() - ctx.settings.keep_alive_interval


def _wait_alive(ctx: _RendezvousContext) -> _Action:
    return _Action.KEEP_ALIVE if _needs_heartbeat(ctx) else _Action.SYNC


Operation = Callable[[_RendezvousContext, float], _Action]


class _RendezvousExitOp:
    """Leaves the round."""

    def __call__(self, ctx: _RendezvousContext, deadline: float) -> _Action:
        if ctx.node not in ctx.state.participants:
            return _Action.FINISH
        if time.monotonic() > deadline:
            return _Action.ERROR_TIMEOUT
        return _Action.REMOVE_FROM_PARTICIPANTS


class _RendezvousCloseOp:
    """Ends the rendezvous."""

    def __call__(self, ctx: _RendezvousContext, deadline: float) -> _Action:
        if ctx.state.closed:
            return _Action.FINISH
        if time.monotonic() > deadline:
            return _Action.ERROR_TIMEOUT
        return _Action.MARK_RENDEZVOUS_CLOSED


class _RendezvousKeepAliveOp:
    """Renews the heartbeat."""

    def __call__(self, ctx: _RendezvousContext, deadline: float) -> _Action:
        if time.monotonic() > deadline:
            return _Action.ERROR_TIMEOUT
        return _Action.KEEP_ALIVE if _needs_heartbeat(ctx) else _Action.FINISH


class _RendezvousJoinOp:
    """Takes part in the next round that becomes complete."""

    def __call__(self, ctx: _RendezvousContext, deadline: float) -> _Action:
        state, node = ctx.state, ctx.node
        if state.closed:
            return _Action.ERROR_CLOSED
        if node in state.redundancy_list:
            # No deadline: a spare node waits as long as the job runs.
            is_full = len(state.participants) >= ctx.settings.max_nodes
            return _wait_alive(ctx) if is_full else _Action.REMOVE_FROM_REDUNDANCY_LIST
        if state.complete and node in state.participants:
            return _Action.FINISH
        late = time.monotonic() - deadline
        if late > 0:
            return self._give_up(ctx, late)
        return self._outside(ctx) if node not in state.participants else self._inside(ctx)

    @staticmethod
    def _give_up(ctx: _RendezvousContext, late: float) -> _Action:
        if late <= _ROLLBACK_SECONDS:
            if ctx.node in ctx.state.participants:
                return _Action.REMOVE_FROM_PARTICIPANTS
            if ctx.node in ctx.state.wait_list:
                return _Action.REMOVE_FROM_WAIT_LIST
        return _Action.ERROR_TIMEOUT

    @staticmethod
    def _outside(ctx: _RendezvousContext) -> _Action:
        state = ctx.state
        if not state.complete:
            return _Action.ADD_TO_PARTICIPANTS
        if ctx.node in state.wait_list:
            return _wait_alive(ctx)
        if len(state.participants) >= ctx.settings.max_nodes:
            return _Action.ADD_TO_REDUNDANCY_LIST
        return _Action.ADD_TO_WAIT_LIST

    @staticmethod
    def _inside(ctx: _RendezvousContext) -> _Action:
        state = ctx.state
        enough = len(state.participants) >= ctx.settings.min_nodes
        if enough and state.deadline is not None and state.deadline < datetime.utcnow():
            return _Action.MARK_RENDEZVOUS_COMPLETE
        return _wait_alive(ctx)


class _RendezvousOpExecutor(ABC):
    """Runs operations to their end."""

    @abstractmethod
    def run(
        self,
        state_handler: Operation,
        deadline: float,
        update_deadline: Callable[[timedelta], float] | None = None,
    ) -> None:
        """Returns when the operation is finished; raises what it says."""


class _DistributedRendezvousOpExecutor(_RendezvousOpExecutor):
    """Applies what an operation wants to the shared state until it is finished."""

    def __init__(
        self,
        node: _NodeDesc,
        state_holder: _RendezvousStateHolder,
        settings: RendezvousSettings,
    ) -> None:
        self._node, self._holder, self._settings = node, state_holder, settings

    def run(
        self,
        state_handler: Operation,
        deadline: float,
        update_deadline: Callable[[timedelta], float] | None = None,
    ) -> None:
        """Reads, asks, changes, writes; until the operation has what it wants."""
        while True:
            # After a change this writes; where another node was faster it reads, and the
            # operation decides anew.
            self._holder.sync()
            state = self._holder.state
            action = state_handler(_RendezvousContext(self._node, state, self._settings), deadline)
            if action is _Action.FINISH:
                return
            if action is _Action.ERROR_CLOSED:
                raise RendezvousClosedError("the rendezvous is closed")
            if action is _Action.ERROR_TIMEOUT:
                raise RendezvousTimeoutError(self._what_is_missing(state))
            if action is _Action.SYNC:
                _delay(seconds=1)
                continue
            if action is _Action.REMOVE_FROM_REDUNDANCY_LIST and update_deadline is not None:
                # The wait for a free place does not count.
                deadline = update_deadline(self._settings.timeout.join)
            self._CHANGES[action](self, state)
            self._holder.mark_dirty()

    def _what_is_missing(self, state: _RendezvousState) -> str:
        there = ", ".join(str(node) for node in sorted(state.participants)) or "none"
        return (
            f"the rendezvous {self._settings.run_id!r} was not complete in time: "
            f"{self._settings.min_nodes} to {self._settings.max_nodes} nodes expected, "
            f"{len(state.participants)} joined ({there})"
        )

    def _keep_alive(self, state: _RendezvousState) -> None:
        state.last_heartbeats[self._node] = datetime.utcnow()

    def _add_to_participants(self, state: _RendezvousState) -> None:
        state.wait_list.discard(self._node)
        # Ranks are given out when the round is complete.
        state.participants[self._node] = 0
        self._keep_alive(state)
        if len(state.participants) == self._settings.max_nodes:
            self._complete(state)
        elif len(state.participants) >= self._settings.min_nodes and state.deadline is None:
            state.deadline = datetime.utcnow() + self._settings.timeout.last_call

    def _add_to_wait_list(self, state: _RendezvousState) -> None:
        state.redundancy_list.discard(self._node)
        state.wait_list.add(self._node)
        self._keep_alive(state)

    def _add_to_redundancy_list(self, state: _RendezvousState) -> None:
        state.redundancy_list.add(self._node)
        self._keep_alive(state)

    def _leave_participants(self, state: _RendezvousState) -> None:
        del state.participants[self._node]
        state.last_heartbeats.pop(self._node, None)
        _lost_participants(state, self._settings.min_nodes)

    def _leave_wait_list(self, state: _RendezvousState) -> None:
        state.wait_list.remove(self._node)
        state.last_heartbeats.pop(self._node, None)

    def _leave_redundancy_list(self, state: _RendezvousState) -> None:
        state.redundancy_list.discard(self._node)
        state.last_heartbeats.pop(self._node, None)

    def _complete(self, state: _RendezvousState) -> None:
        state.complete, state.deadline = True, None
        # The order of names, so that neighbours on one machine have neighbouring ranks.
        for rank, node in enumerate(sorted(state.participants)):
            state.participants[node] = rank

    def _close(self, state: _RendezvousState) -> None:
        state.closed = True

    _CHANGES = {
        _Action.KEEP_ALIVE: _keep_alive,
        _Action.ADD_TO_PARTICIPANTS: _add_to_participants,
        _Action.ADD_TO_WAIT_LIST: _add_to_wait_list,
        _Action.ADD_TO_REDUNDANCY_LIST: _add_to_redundancy_list,
        _Action.REMOVE_FROM_PARTICIPANTS: _leave_participants,
        _Action.REMOVE_FROM_WAIT_LIST: _leave_wait_list,
        _Action.REMOVE_FROM_REDUNDANCY_LIST: _leave_redundancy_list,
        _Action.MARK_RENDEZVOUS_COMPLETE: _complete,
        _Action.MARK_RENDEZVOUS_CLOSED: _close,
    }


def _beat(handler: weakref.ref[DynamicRendezvousHandler]) -> None:
    alive = handler()
    if alive is not None:
        alive._keep_alive()


class DynamicRendezvousHandler(RendezvousHandler):
    """The rendezvous of one node."""

    _node_desc_generator = _NodeDescGenerator()

    @classmethod
    def from_backend(
        cls,
        run_id: str,
        store: Store,
        backend: RendezvousBackend,
        min_nodes: int,
        max_nodes: int,
        local_addr: str | None = None,
        timeout: RendezvousTimeout | None = None,
        keep_alive_interval: int = 5,
        keep_alive_max_attempt: int = 3,
    ) -> DynamicRendezvousHandler:
        """A handler whose state the backend keeps."""
        if min_nodes < 1:
            raise ValueError(
                f"The minimum number of nodes ({min_nodes}) must be greater than zero."
            )
        if max_nodes < min_nodes:
            raise ValueError(
                f"The maximum number of nodes ({max_nodes}) must be greater than or equal to the "
                f"minimum number of nodes ({min_nodes})."
            )
        settings = RendezvousSettings(
            run_id,
            min_nodes,
            max_nodes,
            timeout or RendezvousTimeout(),
            timedelta(seconds=keep_alive_interval),
            keep_alive_max_attempt,
        )
        node = cls._node_desc_generator.generate(local_addr)
        holder = _BackendRendezvousStateHolder(backend, settings)
        return cls(node, settings, backend.name, store, holder)

    def __init__(
        self,
        node: _NodeDesc,
        settings: RendezvousSettings,
        backend_name: str,
        store: Store,
        state_holder: _RendezvousStateHolder,
    ) -> None:
        if not settings.run_id:
            raise ValueError("The run id must be a non-empty string.")
        if not backend_name:
            raise ValueError("The backend name must be a non-empty string.")
        self._this_node, self._settings, self._backend_name = node, settings, backend_name
        self._store, self._state_holder = store, state_holder
        self._op_executor = _DistributedRendezvousOpExecutor(node, state_holder, settings)
        # The state holder is used by the heartbeat's thread too.
        self._lock = threading.Lock()
        self._keep_alive_timer: _PeriodicTimer | None = None
        self._shared_tcp_store_server: Store | None = None
        self._bootstrap_store_info: RendezvousStoreInfo | None = None

    @property
    def settings(self) -> RendezvousSettings:
        """What the nodes agree on."""
        return self._settings

    def get_backend(self) -> str:
        """The name of the backend."""
        return self._backend_name

    @property
    def use_agent_store(self) -> bool:
        """True unless TORCH_DISABLE_SHARE_RDZV_TCP_STORE is 1."""
        return os.environ.get("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0") != "1"

    def get_run_id(self) -> str:
        """The name of the job."""
        return self._settings.run_id

    @contextmanager
    def _failures_recorded(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._record(f"{type(error).__name__}: {error}", NodeState.FAILED)
            raise

    def _record(self, message: str, state: NodeState, rank: int | None = None) -> None:
        construct_and_record_rdzv_event(
            run_id=self._settings.run_id,
            message=f"[{self._this_node}] {message}",
            node_state=state,
            name=type(self).__name__,
            hostname=self._this_node.addr,
            pid=self._this_node.pid,
            local_id=self._this_node.local_id,
            rank=rank,
        )

    @staticmethod
    def _deadline(timeout: timedelta) -> float:
        return time.monotonic() + timeout.total_seconds()

    def next_rendezvous(self) -> RendezvousInfo:
        """Leaves the present round, if any, and returns when the next is complete."""
        try:
            self._stop_heartbeats()
            if self._state_holder.state.round == 0:
                # Nodes that start together would all write at once.
                _delay(seconds=(0, 0.3))
            deadline = self._deadline(self._settings.timeout.join)
            self._op_executor.run(_RendezvousExitOp(), deadline)
            self._op_executor.run(_RendezvousJoinOp(), deadline, self._deadline)
            self._start_heartbeats()
            state = self._state_holder.state
            rank, world_size = state.participants[self._this_node], len(state.participants)
            store = self._round_store(state.round)
            info = RendezvousInfo(store, rank, world_size, self._workers_store(rank, store))
        except RendezvousGracefulExitError:
            raise
        except Exception as error:
            self._record(f"{type(error).__name__}: {error}", NodeState.FAILED)
            raise
        self._record(f"round {state.round} is complete", NodeState.SUCCEEDED, rank)
        return info

    def _round_store(self, number: int) -> Store:
        return dist.PrefixStore(f"torch.rendezvous.{self._settings.run_id}.{number}", self._store)

    def _create_tcp_store_server(self, master_addr: str, port: int) -> Store:
        return dist.TCPStore(host_name=master_addr, port=port, is_master=True, multi_tenant=True)

    def _workers_store(self, rank: int, store: Store) -> RendezvousStoreInfo:
        """Where the workers' store is; node 0 serves it."""
        address = self._this_node.addr
        if not self.use_agent_store:
            return RendezvousStoreInfo.build(rank, store, local_addr=address)
        if rank == 0 and self._shared_tcp_store_server is None:
            self._shared_tcp_store_server = self._create_tcp_store_server(address, 0)
        server = self._shared_tcp_store_server
        return RendezvousStoreInfo.build(
            rank, store, local_addr=address, server_port=server.port if rank == 0 else None
        )

    def is_closed(self) -> bool:
        """True when no round will come any more."""
        with self._failures_recorded(), self._lock:
            self._state_holder.sync()
            return self._state_holder.state.closed

    def set_closed(self) -> None:
        """Ends the rendezvous for all nodes."""
        with self._failures_recorded(), self._lock:
            self._close()

    def _close(self) -> None:
        self._op_executor.run(_RendezvousCloseOp(), self._deadline(self._settings.timeout.close))
        self._record("the rendezvous is closed", NodeState.SUCCEEDED)

    def num_nodes_waiting(self) -> int:
        """How many nodes wait for the next round."""
        with self._failures_recorded(), self._lock:
            self._state_holder.sync()
            return len(self._state_holder.state.wait_list)

    def shutdown(self) -> bool:
        """Stops the heartbeat and closes; False where the backend cannot be reached."""
        self._stop_heartbeats()
        try:
            with self._lock:
                self._close()
        except RendezvousError as error:
            logger.warning("the node %s could not close the rendezvous: %s", self._this_node, error)
            return False
        except Exception as error:
            self._record(f"{type(error).__name__}: {error}", NodeState.FAILED)
            raise
        return True

    def _keep_alive(self) -> None:
        with self._lock:
            try:
                self._op_executor.run(
                    _RendezvousKeepAliveOp(), self._deadline(self._settings.timeout.heartbeat)
                )
            except RendezvousError as error:
                logger.warning("no heartbeat of node %s: %s", self._this_node, error)

    def _start_heartbeats(self) -> None:
        self._keep_alive_timer = _PeriodicTimer(
            self._settings.keep_alive_interval, _beat, weakref.ref(self)
        )
        self._keep_alive_timer.set_name(f"RendezvousKeepAliveTimer_{self._this_node.local_id}")
        self._keep_alive_timer.start()

    def _stop_heartbeats(self) -> None:
        if self._keep_alive_timer is not None:
            self._keep_alive_timer.cancel()


def _seconds(params: RendezvousParameters, key: str) -> timedelta | None:
    number = params.get_as_int(f"{key}_timeout")
    return None if number is None else timedelta(seconds=number)


def create_handler(
    store: Store, backend: RendezvousBackend, params: RendezvousParameters
) -> DynamicRendezvousHandler:
    """A handler from parameters. Options in seconds: join_timeout, last_call_timeout,
    close_timeout, heartbeat_timeout, keep_alive_interval."""
    try:
        timeout = RendezvousTimeout(
            *(_seconds(params, key) for key in ("join", "last_call", "close", "heartbeat"))
        )
        interval = params.get("keep_alive_interval", 5)
        if isinstance(interval, timedelta):
            interval = interval.total_seconds()
        return DynamicRendezvousHandler.from_backend(
            params.run_id,
            store,
            backend,
            params.min_nodes,
            params.max_nodes,
            params.local_addr,
            timeout,
            keep_alive_interval=float(interval),
            keep_alive_max_attempt=params.get_as_int("keep_alive_max_attempt", 3),
        )
    except Exception as error:
        construct_and_record_rdzv_event(
            message=f"{type(error).__name__}: {error}",
            run_id=params.run_id,
            node_state=NodeState.FAILED,
        )
        raise
