"""Several processes working together. The groups and collectives are in distributed_c10d, the
engine is C++ behind torch._C._distributed_c10d."""
# ruff: noqa: F401

from torch import _later
from torch._C._distributed_c10d import (
    _DEFAULT_FIRST_BUCKET_BYTES as _DEFAULT_FIRST_BUCKET_BYTES,
)
from torch._C._distributed_c10d import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    BuiltinCommHookType,
    DebugLevel,
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    FileStore,
    GatherOptions,
    GradBucket,
    HashStore,
    PrefixStore,
    ProcessGroup,
    ProcessGroupGloo,
    ProcessGroupMPI,
    ProcessGroupNCCL,
    QueueEmptyError,
    ReduceOp,
    ReduceOptions,
    Reducer,
    ReduceScatterOptions,
    ScatterOptions,
    Store,
    TCPStore,
    Work,
    _broadcast_coalesced,
    _compute_bucket_assignment_by_size,
    _ControlCollectives,
    _create_work_from_future,
    _is_gloo_available,
    _make_nccl_premul_sum,
    _register_builtin_comm_hook,
    _register_comm_hook,
    _register_process_group,
    _resolve_process_group,
    _StoreCollectives,
    _test_python_store,
    _unregister_all_process_groups,
    _unregister_process_group,
    _verify_params_across_processes,
    get_debug_level,
    set_debug_level,
    set_debug_level_from_env,
)
from torch._C._distributed_c10d import Work as _Work
from torch.distributed._backends import (
    Backend,
    BackendConfig,
    get_default_backend_for_device,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_ucc_available,
    is_xccl_available,
)
from torch.distributed.constants import default_pg_nccl_timeout, default_pg_timeout
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.distributed_c10d import (
    GroupMember,
    P2POp,
    _coalescing_manager,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    broadcast_object_list,
    destroy_process_group,
    gather,
    gather_object,
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    irecv,
    is_initialized,
    is_torchelastic_launched,
    isend,
    monitored_barrier,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    recv,
    recv_object_list,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
    scatter_object_list,
    send,
    send_object_list,
    split_group,
    supports_complex,
)
from torch.distributed.rendezvous import register_rendezvous_handler, rendezvous

__all__ = [name for name in globals() if name[:1] != "_"]

reduce_op = ReduceOp


def is_available() -> bool:
    """Whether processes can work together: yes."""
    return True


_SUBMODULES = {"_tensor", "algorithms", "autograd", "constants", "device_mesh", "distributed_c10d"}
_SUBMODULES |= {
    "elastic",
    "fsdp",
    "launcher",
    "nn",
    "optim",
    "pipelining",
    "rendezvous",
    "run",
    "tensor",
}
_SUBMODULES |= {"_composable", "_functional_collectives", "collective_utils", "rpc"}
_SUBMODULES |= {"_shard", "_symmetric_memory", "checkpoint", "flight_recorder", "plan", "utils"}
__getattr__ = _later.submodules(__name__, _SUBMODULES)
