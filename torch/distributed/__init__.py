"""Several processes working together: not available yet. is_available() says so; the names that
programs import are there, and starting a group raises NotImplementedError."""

import datetime
import enum

from torch import _later

__all__ = ["Backend", "ReduceOp", "get_rank", "get_world_size", "is_available", "is_initialized"]

default_pg_timeout = datetime.timedelta(minutes=30)


def is_available() -> bool:
    """Whether processes can work together: not in this version."""
    return False


def is_initialized() -> bool:
    """Whether this process is part of a group: no."""
    return False


def is_nccl_available() -> bool:
    """Whether NCCL can be used: no."""
    return False


is_gloo_available = is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available
is_torchelastic_launched = is_nccl_available


class ReduceOp(enum.Enum):
    """How values of several processes become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8
    UNUSED = 9


reduce_op = ReduceOp


class Backend(str):
    """The name of a way to communicate."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return str.__new__(cls, name.lower())


class GroupMember:
    """The group of all processes, and what those outside of a group get for it."""

    WORLD = None
    NON_GROUP_MEMBER = -100


group = GroupMember


def init_process_group(*args, **kwargs):
    """Would make this process part of a group."""
    raise NotImplementedError(
        "torch.distributed.init_process_group is not implemented in this version: "
        "torch.distributed.is_available() is False"
    )


def _needs_group(name):
    def needs_group(*args, **kwargs):
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )

    needs_group.__name__ = needs_group.__qualname__ = name
    needs_group.__doc__ = "Needs a process group, and there is none."
    return needs_group


_COLLECTIVES = (
    "all_gather all_gather_coalesced all_gather_into_tensor all_gather_object all_reduce "
    "all_reduce_coalesced all_to_all all_to_all_single barrier batch_isend_irecv broadcast "
    "broadcast_object_list destroy_process_group gather gather_object get_backend "
    "get_global_rank get_group_rank get_process_group_ranks get_rank get_world_size irecv isend "
    "monitored_barrier new_group new_subgroups new_subgroups_by_enumeration recv "
    "recv_object_list reduce reduce_scatter reduce_scatter_tensor scatter scatter_object_list "
    "send send_object_list split_group"
)
globals().update({name: _needs_group(name) for name in _COLLECTIVES.split()})
globals().update(
    _later.names(
        __name__,
        "DeviceMesh DistBackendError DistError DistNetworkError DistStoreError FileStore HashStore "
        "P2POp PrefixStore ProcessGroup ProcessGroupGloo ProcessGroupNCCL Store TCPStore Work "
        "get_default_backend_for_device init_device_mesh supports_complex",
    )
)
_FSDP = (
    "BackwardPrefetch CPUOffload CPUOffloadPolicy DataParallelMeshDims FSDPModule FlatParameter "
    "FullOptimStateDictConfig FullStateDictConfig FullyShardedDataParallel "
    "LocalOptimStateDictConfig LocalStateDictConfig "
    "MixedPrecision MixedPrecisionPolicy OffloadPolicy OptimStateDictConfig OptimStateKeyType "
    "ShardedOptimStateDictConfig ShardedStateDictConfig ShardingStrategy StateDictConfig "
    "StateDictSettings StateDictType UnshardHandle fully_shard register_fsdp_forward_method"
)
_TENSOR = (
    "DTensor DeviceMesh Partial Placement Replicate Shard distribute_module distribute_tensor "
    "empty full init_device_mesh ones rand randn zeros"
)
_COMPRESS = (
    "fp16_compress_hook fp16_compress_wrapper bf16_compress_hook bf16_compress_wrapper "
    "allreduce_hook"
)
_CHECKPOINT = (
    "DefaultLoadPlanner DefaultSavePlanner FileSystemReader FileSystemWriter "
    "HuggingFaceStorageReader HuggingFaceStorageWriter LoadPlan LoadPlanner Metadata SavePlan "
    "SavePlanner StorageReader StorageWriter async_save load load_state_dict save save_state_dict"
)
_SUBMODULES = _later.install(
    __name__,
    f"""
    algorithms._checkpoint.checkpoint_wrapper: CheckpointImpl CheckpointWrapper apply_activation_checkpointing checkpoint_wrapper offload_wrapper
    algorithms.ddp_comm_hooks.default_hooks: {_COMPRESS}
    algorithms.ddp_comm_hooks.powerSGD_hook: PowerSGDState powerSGD_hook batched_powerSGD_hook
    algorithms.ddp_comm_hooks.post_localSGD_hook: PostLocalSGDState post_localSGD_hook
    algorithms.join: Join Joinable JoinHook
    algorithms.model_averaging.averagers: ModelAverager PeriodicModelAverager
    _composable: checkpoint fully_shard replicate
    _composable.fsdp: {_FSDP}
    _composable.fsdp.fully_shard: fully_shard
    _composable.replicate: replicate
    checkpoint._consolidate_hf_safetensors: consolidate_safetensors_files
    checkpoint.hf_storage: HuggingFaceStorageReader HuggingFaceStorageWriter
    checkpoint.default_planner: DefaultLoadPlanner DefaultSavePlanner
    checkpoint.format_utils: _EmptyStateDictLoadPlanner dcp_to_torch_save torch_save_to_dcp
    checkpoint.metadata: Metadata TensorStorageMetadata BytesStorageMetadata
    checkpoint.optimizer: load_sharded_optimizer_state_dict
    checkpoint.planner: LoadPlan LoadPlanner SavePlan SavePlanner ReadItem WriteItem
    checkpoint.staging: DefaultStager StagingOptions
    checkpoint.state_dict_loader: _load_state_dict load
    checkpoint.state_dict_saver: AsyncCheckpointerType AsyncSaveResponse save async_save
    checkpoint.stateful: Stateful
    checkpoint.storage: StorageReader StorageWriter
    device_mesh: DeviceMesh init_device_mesh
    elastic.multiprocessing: start_processes
    fsdp: {_FSDP}
    fsdp._fully_shard: {_FSDP}
    fsdp.api: {_FSDP}
    fsdp.fully_sharded_data_parallel: {_FSDP}
    fsdp._common_utils: _FSDPState
    fsdp._runtime_utils: _root_pre_forward
    fsdp._traversal_utils: _get_fsdp_states
    fsdp.sharded_grad_scaler: ShardedGradScaler
    fsdp.wrap: _or_policy CustomPolicy ModuleWrapPolicy always_wrap_policy enable_wrap lambda_auto_wrap_policy size_based_auto_wrap_policy transformer_auto_wrap_policy wrap
    _functional_collectives: AsyncCollectiveTensor all_gather_tensor all_reduce all_to_all_single all_to_all_single_autograd permute_tensor reduce_scatter_tensor wait_tensor
    launcher: LaunchConfig elastic_launch
    launcher.api: LaunchConfig elastic_launch
    nn: RemoteModule all_gather all_reduce
    nn.functional: all_gather all_reduce all_to_all broadcast gather reduce
    optim: DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer
    pipelining: PipelineStage Schedule1F1B ScheduleGPipe SplitPoint pipe_split pipeline
    pipelining.schedules: PipelineScheduleMulti PipelineScheduleSingle get_schedule_class
    pipelining.stage: PipelineStage
    rpc.functions: async_execution
    run: get_args_parser main run
    tensor: {_TENSOR}
    tensor.device_mesh: DeviceMesh init_device_mesh
    tensor.debug: CommDebugMode
    tensor._utils: compute_local_shape_and_global_offset
    tensor.experimental: context_parallel implicit_replication local_map
    tensor.experimental._attention: set_rotate_method
    tensor.parallel: ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleOutput RowwiseParallel SequenceParallel loss_parallel parallelize_module
    tensor.parallel.style: ColwiseParallel ParallelStyle RowwiseParallel
    tensor.placement_types: Partial Placement Replicate Shard _StridedShard
    _tensor: {_TENSOR}
    _tensor.experimental: implicit_replication
    _tensor.placement_types: Partial Placement Replicate Shard DTensorSpec TensorMeta
    _shard.sharded_tensor: ShardedTensor
    utils: _sync_module_states
    """,  # noqa: E501
)
_SUBMODULES |= {"autograd", "constants", "distributed_c10d"}
__getattr__ = _later.submodules(__name__, _SUBMODULES)
