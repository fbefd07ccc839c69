"""Methods of a value that lives elsewhere: rref.rpc_sync().method(args)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.distributed.rpc.constants import UNSET_RPC_TIMEOUT

__all__ = ["RRefProxy"]


def _call_method(rref: Any, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Runs at the owner."""
    return getattr(rref.local_value(), name)(*args, **kwargs)


class RRefProxy:
    """Attributes are functions that call the method of that name at the owner."""

    def __init__(self, rref: Any, rpc_api: Callable, timeout: float = UNSET_RPC_TIMEOUT) -> None:
        self.rref, self.rpc_api, self.rpc_timeout = rref, rpc_api, timeout

    def __getattr__(self, name: str) -> Callable:
        def call(*args: Any, **kwargs: Any) -> Any:
            sent = (self.rref, name, args, kwargs)
            return self.rpc_api(
                self.rref.owner(), _call_method, args=sent, timeout=self.rpc_timeout
            )

        return call
