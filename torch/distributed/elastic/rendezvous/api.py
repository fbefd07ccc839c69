"""The contract between agents and rendezvous handlers, and the table of handlers."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch.distributed import Store
from torch.distributed.elastic.utils.distributed import get_free_port

__all__ = [
    "RendezvousClosedError",
    "RendezvousConnectionError",
    "RendezvousError",
    "RendezvousGracefulExitError",
    "RendezvousHandler",
    "RendezvousHandlerCreator",
    "RendezvousHandlerRegistry",
    "RendezvousInfo",
    "RendezvousParameters",
    "RendezvousStateError",
    "RendezvousStoreInfo",
    "RendezvousTimeoutError",
]


class RendezvousError(Exception):
    """A rendezvous failed."""


class RendezvousClosedError(RendezvousError):
    """The rendezvous takes no node any more."""


class RendezvousTimeoutError(RendezvousError):
    """The rendezvous was not complete in time."""


class RendezvousConnectionError(RendezvousError):
    """The backend of the rendezvous cannot be reached."""


class RendezvousStateError(RendezvousError):
    """What the backend holds is no state of a rendezvous."""


class RendezvousGracefulExitError(RendezvousError):
    """This node shall leave; that is no failure."""


@dataclass
class RendezvousStoreInfo:
    """Where the workers of a round find their store."""

    MASTER_ADDR_KEY: ClassVar[str] = "MASTER_ADDR"
    MASTER_PORT_KEY: ClassVar[str] = "MASTER_PORT"
    master_addr: str
    master_port: int

    @staticmethod
    def build(
        rank: int, store: Store, local_addr: str | None, server_port: int | None = None
    ) -> RendezvousStoreInfo:
        """Rank 0 says its address and port in the store; all read them there."""
        if rank == 0:
            port = server_port or get_free_port()
            store.set(RendezvousStoreInfo.MASTER_ADDR_KEY, local_addr or socket.getfqdn())
            store.set(RendezvousStoreInfo.MASTER_PORT_KEY, str(port))
        address = store.get(RendezvousStoreInfo.MASTER_ADDR_KEY).decode()
        return RendezvousStoreInfo(
            address, int(store.get(RendezvousStoreInfo.MASTER_PORT_KEY).decode())
        )


class RendezvousInfo:
    """What a node knows after a rendezvous."""

    def __init__(
        self,
        store: Store,
        rank: int,
        world_size: int,
        bootstrap_store_info: RendezvousStoreInfo,
    ) -> None:
        self._store, self._rank, self._world_size = store, rank, world_size
        self._bootstrap_store_info = bootstrap_store_info

    @property
    def store(self) -> Store:
        """The store of this round's nodes."""
        return self._store

    @property
    def rank(self) -> int:
        """The number of this node."""
        return self._rank

    @property
    def world_size(self) -> int:
        """The number of nodes."""
        return self._world_size

    @property
    def bootstrap_store_info(self) -> RendezvousStoreInfo | None:
        """Where workers find their store."""
        return self._bootstrap_store_info


class RendezvousHandler(ABC):
    """A way to find the other nodes."""

    @abstractmethod
    def get_backend(self) -> str:
        """The name it is registered under."""

    @property
    def use_agent_store(self) -> bool:
        """True where workers use a store that an agent serves."""
        return False

    @abstractmethod
    def next_rendezvous(self) -> RendezvousInfo:
        """Meets the other nodes; returns when the round is complete."""

    @abstractmethod
    def is_closed(self) -> bool:
        """True when no round will come any more."""

    @abstractmethod
    def set_closed(self) -> None:
        """Ends the rendezvous for all nodes."""

    @abstractmethod
    def num_nodes_waiting(self) -> int:
        """How many nodes came too late for the present round and wait for the next."""

    @abstractmethod
    def get_run_id(self) -> str:
        """The name of the job."""

    @abstractmethod
    def shutdown(self) -> bool:
        """Closes and frees all; False where that failed."""


_TRUE, _FALSE = {"1", "true", "t", "yes", "y"}, {"0", "false", "f", "no", "n"}


class RendezvousParameters:
    """What a handler is made from: the job, its size, and the backend's own options."""

    def __init__(
        self,
        backend: str,
        endpoint: str,
        run_id: str,
        min_nodes: int,
        max_nodes: int,
        local_addr: str | None = None,
        **kwargs: Any,
    ) -> None:
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        if min_nodes < 1:
            raise ValueError(
                f"The minimum number of rendezvous nodes ({min_nodes}) must be greater than zero."
            )
        if max_nodes < min_nodes:
            raise ValueError(
                f"The maximum number of rendezvous nodes ({max_nodes}) must be greater than or "
                f"equal to the minimum number of rendezvous nodes ({min_nodes})."
            )
        self.backend, self.endpoint, self.run_id = backend, endpoint, run_id
        self.min_nodes, self.max_nodes = min_nodes, max_nodes
        self.local_addr, self.config = local_addr, kwargs

    def get(self, key: str, default: Any = None) -> Any:
        """An option, or default."""
        return self.config.get(key, default)

    def get_as_bool(self, key: str, default: bool | None = None) -> bool | None:
        """An option that says yes or no, in any of the usual spellings."""
        value = self.get(key, default)
        if value is None or isinstance(value, bool):
            return value
        word = str(value).lower() if isinstance(value, (str, int)) else ""
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        raise ValueError(
            f"The rendezvous configuration option '{key}' does not represent a valid boolean value."
        )

    def get_as_int(self, key: str, default: int | None = None) -> int | None:
        """An option that is a whole number."""
        value = self.get(key, default)
        if value is None:
            return None
        try:
            return int(value)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"The rendezvous configuration option '{key}' does not represent a valid integer "
                "value."
            ) from error


RendezvousHandlerCreator = Callable[[RendezvousParameters], RendezvousHandler]


class RendezvousHandlerRegistry:
    """Functions that make handlers, by the name of the backend."""

    _registry: dict[str, RendezvousHandlerCreator]

    def __init__(self) -> None:
        self._registry = {}

    def register(self, backend: str, creator: RendezvousHandlerCreator) -> None:
        """Makes creator(params) serve the backend."""
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        known = self._registry.setdefault(backend, creator)
        if known != creator:
            raise ValueError(
                f"The rendezvous backend '{backend}' cannot be registered with '{creator}' as it "
                f"is already registered with '{known}'."
            )

    def create_handler(self, params: RendezvousParameters) -> RendezvousHandler:
        """A handler for the parameters' backend."""
        creator = self._registry.get(params.backend)
        if creator is None:
            raise ValueError(
                f"The rendezvous backend '{params.backend}' is not registered. Did you forget to "
                "call `register`?"
            )
        handler = creator(params)
        if handler.get_backend() != params.backend:
            raise RuntimeError(
                f"The rendezvous backend '{handler.get_backend()}' does not match the requested "
                f"backend '{params.backend}'."
            )
        return handler


rendezvous_handler_registry = RendezvousHandlerRegistry()
