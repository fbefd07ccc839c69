"""FullyShardedDataParallel: the wrapper around a module whose parameters are cut among processes.
It is an older face of fully_shard: the same units gather and reduce. What differs is that modules
are wrapped, not changed, and that state dicts have a type: whole tensors, parts, or distributed
tensors. Each parameter is cut by itself along its first dimension, so that `use_orig_params` has no
effect."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.distributed import distributed_c10d as _core
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import _optim_state
from torch.distributed.fsdp._flat_param import FlatParameter
from torch.distributed.fsdp._fully_shard import _mesh
from torch.distributed.fsdp._fully_shard._module import ModuleState, _cast, _make_unit
from torch.distributed.fsdp._fully_shard._parameter import ShardedParameter
from torch.distributed.fsdp._fully_shard._policies import (
    CPUOffloadPolicy,
    MixedPrecisionPolicy,
    OffloadPolicy,
)
from torch.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    OptimStateKeyType,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from torch.distributed.fsdp.wrap import _auto_wrap
from torch.distributed.tensor import DTensor, distribute_tensor

__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]

WRAPPED = "_fsdp_wrapped_module"
_PREFIX = f"{WRAPPED}."

_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
_KEEPS_WHOLE = (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)
_CONFIGS = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}

Groups = _core.ProcessGroup | tuple[_core.ProcessGroup, _core.ProcessGroup] | None


def clean_name(name: str) -> str:
    """A parameter's name without the wrappers."""
    return name.replace(_PREFIX, "")


def _mesh_of(
    strategy: ShardingStrategy, groups: Groups, mesh: DeviceMesh | None, kind: str
) -> DeviceMesh:
    """The mesh on which a strategy cuts: one dimension, or (replicate, shard)."""
    names = ("replicate", "shard")
    if mesh is not None:
        return mesh
    if isinstance(groups, tuple):
        shard, replicate = groups
        mine, every = _core.get_process_group_ranks(shard), [None] * replicate.size()
        _core.all_gather_object(every, mine, group=replicate)
        return DeviceMesh.from_group([replicate, shard], kind, every, mesh_dim_names=names)
    world = groups.size() if groups is not None else _core.get_world_size()
    if strategy in _HYBRID:
        local = int(os.environ.get("LOCAL_WORLD_SIZE", world))
        if groups is not None or world % local:
            raise ValueError(
                "Manual wrapping with ShardingStrategy.HYBRID_SHARD requires explicit "
                "specification of process group or device_mesh."
            )
        return init_device_mesh(kind, (world // local, local), mesh_dim_names=names)
    if strategy is ShardingStrategy.NO_SHARD:
        if groups is not None:
            raise NotImplementedError(
                "FullyShardedDataParallel: NO_SHARD on a process group other than the default"
            )
        return init_device_mesh(kind, (world, 1), mesh_dim_names=names)
    if groups is not None:
        return DeviceMesh.from_group(groups, kind)
    return init_device_mesh(kind, (world,))


class FullyShardedDataParallel(nn.Module):
    """Wraps a module; its parameters, and those that no wrapper inside has taken, form a unit."""

    def __init__(
        self,
        module: nn.Module,
        process_group: Groups = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Callable | object | None = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[nn.Module] | None = None,
        param_init_fn: Callable[[nn.Module], None] | None = None,
        device_id: int | torch.device | None = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[nn.Parameter] | Iterable[nn.Module] | None = None,
        device_mesh: DeviceMesh | None = None,
    ) -> None:
        super().__init__()
        if isinstance(module, (nn.ModuleList, nn.ModuleDict)):
            raise ValueError(
                "FSDP will not all-gather parameters for containers that do not implement "
                f"forward: {module}"
            )
        self.sharding_strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        self.cpu_offload = cpu_offload or CPUOffload()
        self.mixed_precision = mixed_precision or MixedPrecision()
        self.backward_prefetch, self.forward_prefetch = backward_prefetch, forward_prefetch
        self.limit_all_gathers, self._use_orig_params = limit_all_gathers, use_orig_params
        modules, parameters = _ignored(module, ignored_modules, ignored_states)
        self._ignored_modules, self._ignored_params = modules, parameters
        kind = "cuda" if torch.cuda.is_available() else "cpu"
        mesh = _mesh_of(self.sharding_strategy, process_group, device_mesh, kind)
        if auto_wrap_policy is not None:
            inner = {
                "process_group": process_group, "sharding_strategy": sharding_strategy,
                "cpu_offload": cpu_offload, "backward_prefetch": backward_prefetch,
                "mixed_precision": mixed_precision, "param_init_fn": param_init_fn,
                "device_id": device_id, "sync_module_states": sync_module_states,
                "forward_prefetch": forward_prefetch, "limit_all_gathers": limit_all_gathers,
                "use_orig_params": use_orig_params, "ignored_states": parameters,
                "device_mesh": mesh,
            }  # fmt: skip
            _auto_wrap(module, auto_wrap_policy, modules, parameters, inner, type(self))
        _materialize(module, param_init_fn, device_id, kind)
        if sync_module_states:
            _broadcast_from_first(module, parameters, mesh)
        self._fsdp_wrapped_module = module
        self._shard(mesh, parameters)
        self._is_root: bool | None = None
        self._in_summon = False
        self._settings = StateDictSettings(
            StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig()
        )
        self._register_state_dict_hook(_after_state_dict)
        self._register_load_state_dict_pre_hook(_before_load, with_module=True)
        self.register_load_state_dict_post_hook(_after_load)

    def _shard(self, mesh: DeviceMesh, ignored: set[nn.Parameter]) -> None:
        precision = self.mixed_precision
        info = _mesh.checked(mesh)
        device = torch.device(mesh.device_type)
        policy = MixedPrecisionPolicy(
            precision.param_dtype, precision.reduce_dtype or precision.param_dtype, None,
            precision.cast_forward_inputs,
        )  # fmt: skip
        offload = CPUOffloadPolicy() if self.cpu_offload.offload_params else OffloadPolicy()
        unit = _make_unit([self], info, None, policy, offload, ignored, device)
        state = ModuleState(self, unit, policy)
        state.device = device
        state.reshard_after_forward = False if self.sharding_strategy in _KEEPS_WHOLE else None
        self._fsdp_state, self._device_mesh = state, mesh
        self.process_group, self.world_size = info.shard_group, info.ranks
        self.rank = _core.get_rank()
        if precision.buffer_dtype is not None:
            for one in self.modules():
                for name, buffer in one._buffers.items():
                    if buffer is not None and buffer.is_floating_point():
                        one._buffers[name] = buffer.to(precision.buffer_dtype)

    # ---- as a module
    @property
    def module(self) -> nn.Module:
        """The wrapped module."""
        return self._fsdp_wrapped_module

    @property
    def _has_params(self) -> bool:
        return self._fsdp_state.unit is not None

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == WRAPPED:
                raise
            return getattr(self._fsdp_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self._fsdp_wrapped_module[key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the wrapped module on whole parameters."""
        state = self._fsdp_state
        args, kwargs = state.before_forward(self, args, kwargs)
        precision = self.mixed_precision
        self._is_root = state.is_root
        if state.is_root and precision.cast_root_forward_inputs and precision.param_dtype:
            args, kwargs = _cast((args, kwargs), precision.param_dtype)
        return state.after_forward(self, args, self._fsdp_wrapped_module(*args, **kwargs))

    def check_is_root(self) -> bool:
        """Whether no wrapper is around this one; known after the first run."""
        self._fsdp_state._begin()
        return self._fsdp_state.is_root

    @staticmethod
    def fsdp_modules(module: nn.Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The wrappers in a module, itself included."""
        found = [one for one in module.modules() if isinstance(one, FullyShardedDataParallel)]
        if not root_only:
            return found
        below = {id(inner) for one in found for inner in one.modules() if inner is not one}
        return [one for one in found if id(one) not in below]

    def apply(self, fn: Callable[[nn.Module], None]) -> FullyShardedDataParallel:
        """Calls fn on all modules, with whole parameters, and keeps what it changes."""
        with self.summon_full_params(self, recurse=False):
            return super().apply(fn)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        """Parameters by name; inside of summon_full_params without the wrappers' names."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield (clean_name(name) if self._in_summon else name), parameter

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, torch.Tensor]]:
        """Buffers by name; inside of summon_full_params without the wrappers' names."""
        for name, buffer in super().named_buffers(*args, **kwargs):
            yield (clean_name(name) if self._in_summon else name), buffer

    # ---- training
    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients are added up on each process and not reduced."""
        units = [one._fsdp_state.unit for one in self.fsdp_modules(self)]
        units = [unit for unit in units if unit is not None]
        before = [(unit.reduce_grads, unit.all_reduce_grads) for unit in units]
        for unit in units:
            unit.reduce_grads = unit.all_reduce_grads = False
        try:
            yield
        finally:
            for unit, (reduces, all_reduces) in zip(units, before, strict=True):
                unit.reduce_grads, unit.all_reduce_grads = reduces, all_reduces

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> torch.Tensor:
        """Scales the gradients of all parts so that their norm together is at most max_norm."""
        if not self.check_is_root():
            raise RuntimeError(
                "`clip_grad_norm_()` should only be called on the root FSDP instance"
            )
        total = nn.utils.clip_grad_norm_(list(self.parameters()), max_norm, norm_type)
        return total.full_tensor() if isinstance(total, DTensor) else total

    def register_comm_hook(self, state: object, hook: Callable) -> None:
        """Gives the reduction of gradients to hook(state, gradient, part), which adds up the whole
        gradient of all ranks, divides it and leaves this rank's part in `part`; with NO_SHARD to
        hook(state, gradient), which works in place."""
        if not callable(hook):
            raise TypeError(f"The communication hook must be callable but got {hook}")
        if not self.check_is_root():
            raise AssertionError("register_comm_hook can only be called on a root instance.")
        if self.sharding_strategy in _HYBRID:
            raise AssertionError(
                f"Communication hook is currently not supported for hybrid sharding strategies: "
                f"{self.sharding_strategy}"
            )
        for unit in _units(self):
            if unit.comm_hook is not None:
                raise AssertionError("A communication hook is already registered")
            unit.comm_hook = (hook, state)

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: nn.Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """Inside, parameters are whole; what is written to them is kept, with writeback. All
        processes enter together."""
        if writeback and rank0_only:
            raise NotImplementedError("writeback=True and rank0_only=True is not supported, as "
                                      "model parameter values will not be consistent")  # fmt: skip
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        if not recurse:
            wrappers = [one for one in wrappers if one is module]
        shown = [
            _Shown(parameter, rank0_only, offload_to_cpu, with_grads)
            for one in wrappers
            if one._fsdp_state.unit is not None
            for parameter in one._fsdp_state.unit.parameters
        ]
        for one in wrappers:
            one._in_summon = True
        try:
            yield
        finally:
            for one in wrappers:
                one._in_summon = False
            for one in shown:
                one.end(writeback)

    # ---- state dicts
    @staticmethod
    def set_state_dict_type(
        module: nn.Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:
        """Sets what state dicts of all wrappers in the module hold; returns what was set."""
        config_class, optim_class = _CONFIGS[state_dict_type]
        config = config_class() if state_dict_config is None else state_dict_config
        optim = optim_class() if optim_state_dict_config is None else optim_state_dict_config
        for given, wanted in ((config, config_class), (optim, optim_class)):
            if type(given) is not wanted:
                raise RuntimeError(
                    f"Expected {wanted.__name__} for {state_dict_type} but got "
                    f"{type(given).__name__}"
                )
        before = None
        for one in FullyShardedDataParallel.fsdp_modules(module):
            before = before or one._settings
            one._settings = StateDictSettings(state_dict_type, config, optim)
        return before or StateDictSettings(
            StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig()
        )

    @staticmethod
    def get_state_dict_type(module: nn.Module) -> StateDictSettings:
        """What state dicts of the module hold."""
        for one in FullyShardedDataParallel.fsdp_modules(module):
            return one._settings
        return StateDictSettings(
            StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig()
        )

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: nn.Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> Iterator[None]:
        """set_state_dict_type for a block."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            FullyShardedDataParallel.set_state_dict_type(
                module,
                before.state_dict_type,
                before.state_dict_config,
                before.optim_state_dict_config,
            )

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Parameters and buffers by clean names, as the state dict type says."""
        for unit in _units(self):
            unit.cut()
        return super().state_dict(*args, **kwargs)

    # ---- optimizer state
    optim_state_dict = staticmethod(_optim_state.optim_state_dict)
    optim_state_dict_to_load = staticmethod(_optim_state.optim_state_dict_to_load)
    full_optim_state_dict = staticmethod(_optim_state.full_optim_state_dict)
    sharded_optim_state_dict = staticmethod(_optim_state.sharded_optim_state_dict)
    shard_full_optim_state_dict = staticmethod(_optim_state.shard_full_optim_state_dict)
    flatten_sharded_optim_state_dict = staticmethod(_optim_state.flatten_sharded_optim_state_dict)
    scatter_full_optim_state_dict = staticmethod(_optim_state.scatter_full_optim_state_dict)
    rekey_optim_state_dict = staticmethod(_optim_state.rekey_optim_state_dict)


class _Shown:
    """A parameter that is whole for a while, in its full precision."""

    def __init__(
        self, parameter: ShardedParameter, rank0_only: bool, to_cpu: bool, with_grads: bool
    ) -> None:
        self.parameter, sharded = parameter, parameter.sharded
        values = sharded.detach().full_tensor()
        grad = sharded.grad.full_tensor() if with_grads and sharded.grad is not None else None
        self.whole: nn.Parameter | None = None
        if rank0_only and _core.get_rank() != 0:
            return
        # A replica of one rank is the shard itself: changes must not show before the end.
        values = values.cpu() if to_cpu else values.clone()
        self.whole = nn.Parameter(values, requires_grad=sharded.requires_grad)
        self.whole.grad = grad
        parameter._put(self.whole)

    def end(self, writeback: bool) -> None:
        """Cuts it again, and keeps the values where that is wanted."""
        if self.whole is None:
            return
        sharded = self.parameter.sharded
        if writeback:
            with torch.no_grad():
                _local_part(self.whole.detach(), sharded, out=sharded.detach())
                if self.whole.grad is not None and sharded.grad is not None:
                    _local_part(self.whole.grad, sharded, out=sharded.grad)
        self.parameter.put_sharded()


def _local_part(whole: torch.Tensor, like: DTensor, out: DTensor | None = None) -> DTensor:
    """A whole tensor cut as another one is, without communication."""
    made = distribute_tensor(
        whole.detach().to(like.device), like.device_mesh, like.placements, src_data_rank=None
    )
    if out is not None:
        out._local_tensor.copy_(made._local_tensor)
    return made


def _units(module: nn.Module) -> list[Any]:
    states = [one._fsdp_state for one in FullyShardedDataParallel.fsdp_modules(module)]
    return [state.unit for state in states if state.unit is not None]


def _ignored(
    module: nn.Module, modules: Iterable[nn.Module] | None, states: Iterable | None
) -> tuple[set[nn.Module], set[nn.Parameter]]:
    """The modules and parameters that stay as they are."""
    if modules is not None and states is not None:
        raise ValueError("Cannot pass both ignored_modules and ignored_states at the same time")
    given = list(modules if modules is not None else states or ())
    parameters = {one for one in given if isinstance(one, nn.Parameter)}
    roots = [one for one in given if isinstance(one, nn.Module)]
    wrong = [one for one in given if not isinstance(one, (nn.Parameter, nn.Module))]
    if wrong or (modules is not None and parameters):
        bad = wrong[0] if wrong else next(iter(parameters))
        raise TypeError(f"ignored_modules expects nn.Module list elements but got {type(bad)}")
    if module in roots:
        import warnings

        warnings.warn(
            "Trying to ignore the top-level module passed into the FSDP constructor itself will "
            "result in all parameters being ignored and is not well-supported",
            stacklevel=3,
        )
    found = {inner for root in roots for inner in root.modules()}
    parameters |= {p for one in found for p in one.parameters(recurse=False)}
    return found, parameters


def _materialize(
    module: nn.Module, init: Callable | None, device_id: int | torch.device | None, kind: str
) -> None:
    """Gives modules on the meta device memory and values."""
    target = torch.device(kind) if device_id is None or kind == "cpu" else (
        device_id if isinstance(device_id, torch.device) else torch.device(kind, device_id)
    )  # fmt: skip
    if init is not None and not callable(init):
        raise ValueError(f"Expected {init} to be callable but got {type(init)}")
    for one in module.modules():
        if getattr(one, "_fsdp_state", None) is not None:
            continue
        own = [*one.parameters(recurse=False), *one.buffers(recurse=False)]
        if not any(tensor.is_meta for tensor in own):
            continue
        if init is not None:
            init(one)
            continue
        one.to_empty(device=target, recurse=False)
        if not hasattr(one, "reset_parameters"):
            raise RuntimeError(
                f"{type(one).__name__} is on the meta device and has no reset_parameters(); pass "
                "param_init_fn"
            )
        one.reset_parameters()


def _broadcast_from_first(module: nn.Module, ignored: set[nn.Parameter], mesh: DeviceMesh) -> None:
    """All processes get the parameters and buffers of the mesh's first."""
    first = int(mesh.mesh.flatten()[0])
    with torch.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            if isinstance(tensor, DTensor) or tensor in ignored:
                continue
            _core.broadcast(tensor.detach(), first)


# ---- hooks of state dicts
def _value(value: Any, settings: StateDictSettings) -> Any:
    kind = settings.state_dict_type
    if isinstance(value, DTensor):
        if kind is StateDictType.FULL_STATE_DICT:
            value = value.full_tensor()
        elif kind is StateDictType.LOCAL_STATE_DICT:
            value = value.to_local()
    if settings.state_dict_config.offload_to_cpu and isinstance(value, torch.Tensor):
        value = value.cpu()
    return value


def _after_state_dict(
    module: FullyShardedDataParallel, state_dict: dict[str, Any], prefix: str, local_metadata: dict
) -> None:
    """Takes the wrapper out of names and gives values the form that is set."""
    settings = module._settings
    only_first = getattr(settings.state_dict_config, "rank0_only", False)
    drops = only_first and _core.get_rank() != 0
    for key in [key for key in state_dict if key.startswith(prefix + _PREFIX)]:
        value = _value(state_dict.pop(key).detach(), settings)
        if not drops:
            state_dict[prefix + key[len(prefix) + len(_PREFIX) :]] = value
    if drops:
        for key in [key for key in state_dict if key.startswith(prefix)]:
            del state_dict[key]


def _before_load(
    module: FullyShardedDataParallel, state_dict: dict[str, Any], prefix: str, *args: Any
) -> None:
    """Puts the wrappers into names and cuts whole values."""
    for unit in _units(module):
        unit.cut()
    held = [*nn.Module.named_parameters(module, remove_duplicate=False),
            *nn.Module.named_buffers(module, remove_duplicate=False)]  # fmt: skip
    for name, tensor in held:
        key = prefix + clean_name(name)
        if key not in state_dict:
            continue
        value = state_dict.pop(key)
        if isinstance(tensor, DTensor) and not isinstance(value, DTensor):
            if value.shape == tensor.shape:
                value = _local_part(value, tensor)
            elif value.shape == tensor._local_tensor.shape:
                value = DTensor(value.to(tensor.device), tensor._spec)
        state_dict[prefix + name] = value


def _after_load(module: FullyShardedDataParallel, incompatible: object) -> None:
    unit = module._fsdp_state.unit
    for parameter in unit.parameters if unit is not None else ():
        parameter.refresh()


FlatParameter.__module__ = "torch.distributed.fsdp"
