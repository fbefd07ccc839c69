"""The functions of torch.distributed.rpc. Values behind references stay with their owner until it
shuts down."""

from __future__ import annotations

import itertools
import os
import threading
import types
from collections.abc import Callable
from typing import Any

from torch.distributed import PrefixStore
from torch.distributed.autograd import _check_call
from torch.distributed.rendezvous import rendezvous
from torch.distributed.rpc._agent import Agent, WorkerInfo
from torch.distributed.rpc.backend_registry import BackendType
from torch.distributed.rpc.constants import DEFAULT_SHUTDOWN_TIMEOUT, UNSET_RPC_TIMEOUT
from torch.distributed.rpc.options import RpcBackendOptions, TensorPipeRpcBackendOptions
from torch.distributed.rpc.rref_proxy import RRefProxy
from torch.futures import Future

__all__ = [
    "RRef",
    "get_worker_info",
    "init_rpc",
    "is_available",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]

To = str | int | WorkerInfo

_agent: Agent | None = None
_values: dict[tuple[int, int], Future] = {}
_values_lock = threading.Lock()
_next_id = itertools.count()


def is_available() -> bool:
    """Whether functions of other processes can be called: yes."""
    return True


def _running() -> Agent:
    if _agent is None:
        raise RuntimeError(
            "RPC has not been initialized. Call torch.distributed.rpc.init_rpc first."
        )
    return _agent


def init_rpc(
    name: str,
    backend: BackendType | None = None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options: RpcBackendOptions | None = None,
) -> None:
    """Makes this process the worker `name`. Returns when all workers are there."""
    global _agent
    if _agent is not None:
        raise RuntimeError("RPC is already initialized")
    if backend is not None and not isinstance(backend, BackendType):
        raise TypeError("Argument backend must be a member of BackendType")
    options = rpc_backend_options or TensorPipeRpcBackendOptions()
    if not isinstance(options, RpcBackendOptions):
        raise TypeError("Argument rpc_backend_options must be an instance of RpcBackendOptions")
    size = int(os.environ.get("WORLD_SIZE", "-1")) if world_size is None else world_size
    store, rank, size = next(rendezvous(options.init_method, rank, size))
    _agent = Agent(
        name,
        rank,
        size,
        PrefixStore("torch_rpc", store),
        options.rpc_timeout,
        getattr(options, "num_worker_threads", 16),
    )


def shutdown(graceful: bool = True, timeout: float = DEFAULT_SHUTDOWN_TIMEOUT) -> None:
    """Ends remote calls. Gracefully: waits until all workers want to end."""
    global _agent
    agent = _running()
    try:
        if graceful:
            agent.leave_together(timeout)
    finally:
        _agent = None
        with _values_lock:
            _values.clear()
        agent.close()


def get_worker_info(worker_name: str | None = None) -> WorkerInfo:
    """The worker of that name; this one without a name."""
    agent = _running()
    if worker_name is None:
        return agent.info
    if worker_name not in agent.workers:
        raise RuntimeError(f"Unknown destination worker {worker_name}")
    return agent.workers[worker_name]


def _worker(to: To) -> WorkerInfo:
    if isinstance(to, WorkerInfo):
        return to
    if isinstance(to, str):
        return get_worker_info(to)
    for info in _running().workers.values():
        if info.id == to:
            return info
    raise ValueError(f"no worker has the id {to}")


def rpc_async(
    to: To,
    func: Callable,
    args: tuple | None = None,
    kwargs: dict[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> Future:
    """Calls func there; the Future has its value."""
    if not callable(func):
        raise TypeError("function should be callable.")
    _check_call((args, kwargs))
    agent = _running()
    limit = agent.timeout if timeout == UNSET_RPC_TIMEOUT else timeout
    return agent.call(_worker(to), func, tuple(args or ()), dict(kwargs or {}), limit)


def rpc_sync(
    to: To,
    func: Callable,
    args: tuple | None = None,
    kwargs: dict[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> Any:
    """Calls func there and returns its value, or raises what it raised."""
    return rpc_async(to, func, args, kwargs, timeout).wait()


# ---- references
def _entry(key: tuple[int, int]) -> Future:
    """The value behind a reference, at its owner; it may not be there yet."""
    with _values_lock:
        return _values.setdefault(key, Future())


def _make(key: tuple[int, int], func: Callable, args: tuple, kwargs: dict[str, Any]) -> None:
    """Runs at the owner: fills a reference."""
    entry = _entry(key)
    try:
        entry.set_result(func(*args, **kwargs))
    except Exception as error:
        entry.set_exception(error)
        raise


def _fetch(key: tuple[int, int]) -> Any:
    """Runs at the owner."""
    return _entry(key).wait()


class PyRRef:
    """The base of references."""


class RRef(PyRRef):
    """A value that lives in one process and can be named in all. Made with a value it belongs to
    this process."""

    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, value: Any, type_hint: type | None = None) -> None:
        self._owner, self._key = _running().info, (_running().info.id, next(_next_id))
        self._made: Future | None = None
        _entry(self._key).set_result(value)

    @classmethod
    def _at(cls, owner: WorkerInfo, key: tuple[int, int], made: Future | None = None) -> RRef:
        found = cls.__new__(cls)
        found._owner, found._key, found._made = owner, key, made
        return found

    def __reduce__(self) -> tuple:
        return RRef._at, (self._owner, self._key)

    def __str__(self) -> str:
        kind = "OwnerRRef" if self.is_owner() else "UserRRef"
        return f"{kind}(owner={self._owner.name}, id={self._key})"

    __repr__ = __str__

    def owner(self) -> WorkerInfo:
        """The worker that has the value."""
        return self._owner

    def owner_name(self) -> str:
        """Its name."""
        return self._owner.name

    def is_owner(self) -> bool:
        """Whether this process has it."""
        return self._owner.id == _running().info.id

    def confirmed_by_owner(self) -> bool:
        """Whether the owner has made it."""
        return self._made is None or self._made.done()

    def local_value(self) -> Any:
        """The value, at the owner."""
        if not self.is_owner():
            raise RuntimeError(f"cannot call local_value() on {self}: it belongs to {self._owner}")
        return _entry(self._key).wait()

    def to_here(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """A copy of the value; at the owner the value."""
        if self.is_owner():
            return self.local_value()
        if self._made is not None:
            self._made.wait()
        return rpc_sync(self._owner, _fetch, (self._key,), timeout=timeout)

    def rpc_sync(self, timeout: float = UNSET_RPC_TIMEOUT) -> RRefProxy:
        """Methods of the value, called and waited for."""
        return RRefProxy(self, rpc_sync, timeout)

    def rpc_async(self, timeout: float = UNSET_RPC_TIMEOUT) -> RRefProxy:
        """Methods of the value, each returning a Future."""
        return RRefProxy(self, rpc_async, timeout)

    def remote(self, timeout: float = UNSET_RPC_TIMEOUT) -> RRefProxy:
        """Methods of the value, each returning a reference."""
        return RRefProxy(self, remote, timeout)

    def backward(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> None:
        """Gradients of a value of this process."""
        if dist_autograd_ctx_id != -1:
            raise NotImplementedError("RRef.backward: gradients between processes")
        self.local_value().backward(retain_graph=retain_graph)


def remote(
    to: To,
    func: Callable,
    args: tuple | None = None,
    kwargs: dict[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> RRef:
    """Calls func there and returns a reference to its value at once."""
    owner = _worker(to)
    key = (_running().info.id, next(_next_id))
    sent = (key, func, tuple(args or ()), dict(kwargs or {}))
    return RRef._at(owner, key, rpc_async(owner, _make, sent, timeout=timeout))
