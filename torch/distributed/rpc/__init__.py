"""Calls of functions in other processes: not available yet, as torch.distributed says. The names
are there to be imported and asked about; using them raises NotImplementedError."""

from torch import _later

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether functions of other processes can be called: not in this version."""
    return False


globals().update(
    _later.names(
        __name__,
        "BackendType PyRRef RRef RpcBackendOptions TensorPipeRpcBackendOptions get_worker_info "
        "init_rpc remote rpc_async rpc_sync shutdown",
    )
)
