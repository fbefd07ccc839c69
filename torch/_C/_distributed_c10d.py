"""torch._C._distributed_c10d: what C++ and the classes around it offer to torch.distributed. Loaded
when a program asks for it, never by `import torch`."""
# ruff: noqa: F401

from __future__ import annotations

import json
import pickle

from torch._c10d import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    FileStore,
    HashStore,
    PrefixStore,
    QueueEmptyError,
    Store,
    TCPStore,
)

from torch import _C, _c10d
from torch._distributed.engines import ProcessGroupMPI, ProcessGroupNCCL
from torch._distributed.engines import ProcessGroupWrapper as _ProcessGroupWrapper
from torch._distributed.group import (
    Backend,
    FakeProcessGroup,
    ProcessGroup,
    ProcessGroupGloo,
    ThreadedProcessGroup,
)
from torch._distributed.group import register_process_group as _register_process_group
from torch._distributed.group import resolve_process_group as _resolve_process_group
from torch._distributed.group import set_thread_isolation_mode as _set_thread_isolation_mode
from torch._distributed.group import unregister_all_process_groups as _unregister_all_process_groups
from torch._distributed.group import unregister_process_group as _unregister_process_group
from torch._distributed.options import (
    NO_TIMEOUT as _DEFAULT_NO_TIMEOUT,
)
from torch._distributed.options import (
    PG_TIMEOUT as _DEFAULT_PG_TIMEOUT,
)
from torch._distributed.options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    BuiltinCommHookType,
    DebugLevel,
    ErrorType,
    GatherOptions,
    OpType,
    ReduceOp,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
    WorkResult,
    get_debug_level,
    set_debug_level,
    set_debug_level_from_env,
)
from torch._distributed.options import DistributedBackendOptions as _DistributedBackendOptions
from torch._distributed.options import RedOpType as _RedOpType
from torch._distributed.options import make_premul_sum as _make_nccl_premul_sum
from torch._distributed.reducer import FIRST_BUCKET_BYTES as _DEFAULT_FIRST_BUCKET_BYTES
from torch._distributed.reducer import GradBucket, Reducer
from torch._distributed.reducer import broadcast_coalesced as _broadcast_coalesced
from torch._distributed.reducer import (
    compute_bucket_assignment_by_size as _compute_bucket_assignment_by_size,
)
from torch._distributed.reducer import register_builtin_comm_hook as _register_builtin_comm_hook
from torch._distributed.reducer import register_comm_hook as _register_comm_hook
from torch._distributed.reducer import (
    verify_params_across_processes as _verify_params_across_processes,
)
from torch._distributed.store_collectives import ControlCollectives as _ControlCollectives
from torch._distributed.store_collectives import StoreCollectives as _StoreCollectives
from torch._distributed.work import PythonCallbackWork, Work
from torch._distributed.work import create_work_from_future as _create_work_from_future

__all__ = [name for name in globals() if name[:1].isupper() or name.endswith("debug_level")]

# The server of a worker needs an HTTP server, which most programs never start.
_OF_WORKER_SERVER = {
    "_Request": "Request",
    "_Response": "Response",
    "_WorkerServer": "WorkerServer",
    "_get_handler": "get_handler",
    "_get_handler_names": "get_handler_names",
    "_register_handler": "register_handler",
}


def __getattr__(name):
    if name not in _OF_WORKER_SERVER:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from torch._distributed import worker_server

    return getattr(worker_server, _OF_WORKER_SERVER[name])


# The errors have a name in torch._C too.
for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError):
    setattr(_C, f"_{_error.__name__}", _error)


def _dump_fr_trace_json(
    includeCollectives: bool | None = None, onlyActive: bool | None = None
) -> bytes:
    """What the groups of this process did last, as JSON text."""
    return _c10d._flight_json(includeCollectives is not False, bool(onlyActive)).encode()


def _dump_fr_trace(
    includeCollectives: bool | None = None,
    includeStackTraces: bool | None = None,
    onlyActive: bool | None = None,
) -> bytes:
    """What the groups of this process did last, pickled."""
    found = json.loads(_dump_fr_trace_json(includeCollectives, onlyActive))
    for entry in found.get("entries", []):
        entry["process_group"] = tuple(entry["process_group"])
    return pickle.dumps(found)


def _reset_fr_recording() -> None:
    """Forgets what the groups did."""
    _c10d._flight_reset()


def _is_gloo_available() -> bool:
    """Whether the plugin for Gloo was built and can be loaded."""
    return _c10d._plugin_error("gloo") is None


def _test_python_store(store: Store) -> None:
    """Uses a store that is written in Python as C++ does."""
    prefixed = PrefixStore("test", store)
    prefixed.add("key", 1)
    if prefixed.add("key", 2) != 3:
        raise AssertionError("add did not add")
    prefixed.set("key0", "value0")
    if prefixed.get("key0") != b"value0":
        raise AssertionError("get did not return what was set")
    if prefixed.compare_set("key1", "", "value1") != b"value1":
        raise AssertionError("compare_set did not set a missing key")
    if prefixed.compare_set("key0", "other", "value2") != b"value0":
        raise AssertionError("compare_set replaced another value than expected")
