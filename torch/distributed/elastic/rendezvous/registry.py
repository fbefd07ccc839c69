"""The handlers there are from the start, and those that installed packages bring."""

from __future__ import annotations

import logging
from importlib.metadata import EntryPoint, entry_points

from torch.distributed.elastic.rendezvous.api import (
    RendezvousHandler,
    RendezvousHandlerCreator,
    RendezvousParameters,
    rendezvous_handler_registry,
)

__all__ = ["get_rendezvous_handler"]

logger = logging.getLogger(__name__)


def _c10d(params: RendezvousParameters) -> RendezvousHandler:
    from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import create_backend
    from torch.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler

    backend, store = create_backend(params)
    return create_handler(store, backend, params)


def _static(params: RendezvousParameters) -> RendezvousHandler:
    from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import create_rdzv_handler

    return create_rdzv_handler(params)


def _etcd(params: RendezvousParameters) -> RendezvousHandler:
    raise NotImplementedError(
        f"rendezvous backend {params.backend!r} is not implemented; use c10d or static"
    )


def _register_default_handlers() -> None:
    creators = {"c10d": _c10d, "static": _static, "etcd": _etcd, "etcd-v2": _etcd}
    for name, creator in creators.items():
        rendezvous_handler_registry.register(name, creator)


def _loads(entry: EntryPoint) -> RendezvousHandlerCreator:
    """A creator that loads the package when it is first used."""

    def create(params: RendezvousParameters) -> RendezvousHandler:
        return entry.load()(params)

    return create


def _register_out_of_tree_handlers() -> None:
    for entry in entry_points(group="torchrun.handlers"):
        try:
            rendezvous_handler_registry.register(entry.name, _loads(entry))
        except ValueError:
            logger.debug("a rendezvous backend %s is registered already", entry.name)


def get_rendezvous_handler(params: RendezvousParameters) -> RendezvousHandler:
    """The handler for these parameters."""
    # Looking through all installed packages costs more than a launch; only for unknown names.
    if params.backend not in rendezvous_handler_registry._registry:
        _register_out_of_tree_handlers()
    return rendezvous_handler_registry.create_handler(params)
