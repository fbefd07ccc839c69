"""The static rendezvous: ranks and sizes are given, node 0 serves the store. There is one round."""

from __future__ import annotations

import logging
from datetime import timedelta

from torch.distributed import PrefixStore, Store, TCPStore
from torch.distributed.elastic.rendezvous.api import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
)
from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint

__all__ = ["StaticTCPRendezvous", "create_rdzv_handler"]

logger = logging.getLogger(__name__)

_DEFAULT_TIMEOUT_SECONDS = 600


class StaticTCPRendezvous(RendezvousHandler):
    """All nodes meet at the store of node 0."""

    def __init__(
        self,
        master_addr: str,
        master_port: int,
        rank: int,
        world_size: int,
        run_id: str,
        timeout: int,
    ) -> None:
        self.master_addr, self.master_port = master_addr, master_port
        self.rank, self.world_size, self.run_id = rank, world_size, run_id
        self.timeout = timedelta(seconds=timeout)
        self._store: Store | None = None

    def get_backend(self) -> str:
        """static"""
        return "static"

    @property
    def use_agent_store(self) -> bool:
        """The store of node 0 serves workers too."""
        return True

    def next_rendezvous(self) -> RendezvousInfo:
        """Connects to the store, the first time; ranks stay as they are."""
        if self._store is None:
            logger.info("creating the store at %s:%d", self.master_addr, self.master_port)
            self._store = TCPStore(
                self.master_addr,
                self.master_port,
                self.world_size,
                self.rank == 0,
                self.timeout,
                multi_tenant=True,
            )
            # A store on a port of its choice says which.
            self.master_port = self._store.port
        return RendezvousInfo(
            PrefixStore(self.run_id, self._store),
            self.rank,
            self.world_size,
            RendezvousStoreInfo(self.master_addr, self.master_port),
        )

    def is_closed(self) -> bool:
        """Never."""
        return False

    def set_closed(self) -> None:
        """Nothing to tell others."""

    def num_nodes_waiting(self) -> int:
        """Nobody joins later."""
        return 0

    def get_run_id(self) -> str:
        """The name of the job."""
        return self.run_id

    def shutdown(self) -> bool:
        """Nothing is left to close."""
        return True


def create_rdzv_handler(params: RendezvousParameters) -> RendezvousHandler:
    """A handler from parameters: endpoint host:port, options rank and timeout."""
    if "rank" not in params.config:
        raise ValueError("rank is absent in RendezvousParameters; static rendezvous needs it")
    endpoint = params.endpoint.strip()
    if not endpoint:
        raise ValueError("endpoint is absent in RendezvousParameters; static rendezvous needs it")
    host, port = parse_rendezvous_endpoint(endpoint, -1)
    if port == -1:
        raise ValueError(f"Port is absent in endpoint: {endpoint}")
    return StaticTCPRendezvous(
        host,
        port,
        int(params.config["rank"]),
        params.max_nodes,
        params.run_id,
        int(params.get("timeout", _DEFAULT_TIMEOUT_SECONDS)),
    )
