"""fully_shard: hooks around a module's forward and backward that gather its parameters, cut them
again, and reduce gradients.

The module that runs first without another one around it is the root. It knows the order in which
units ran forward, from which the order of gathering in the backward pass follows, and it ends a
backward pass: what was not used is handled then."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp._fully_shard import _mesh
from torch.distributed.fsdp._fully_shard._parameter import ShardedParameter
from torch.distributed.fsdp._fully_shard._policies import MixedPrecisionPolicy, OffloadPolicy
from torch.distributed.fsdp._fully_shard._unit import Unit, managed
from torch.distributed.tensor import Shard
from torch.utils._pytree import tree_flatten, tree_map

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method"]

Tensor = torch.Tensor


def state_of(module: nn.Module) -> ModuleState | None:
    """The state of a module that is a unit; None for others."""
    return module.__dict__.get("_fsdp_state")


class _Root:
    """What the units below one root share."""

    def __init__(self, members: list[ModuleState]) -> None:
        self.members = members
        self.order: list[ModuleState] = []  # in which forward ran
        self.in_backward = False
        self.last_backward = True


class ModuleState:
    """The state of one module that fully_shard was called on."""

    def __init__(self, module: nn.Module, unit: Unit | None, policy: MixedPrecisionPolicy) -> None:
        self.module, self.unit, self.policy = module, unit, policy
        self.root: _Root | None = None
        self.is_root = False
        self.reshard_after_forward: bool | None = None
        self.reshard_after_backward = True
        self.forward_prefetch: list[ModuleState] = []
        self.backward_prefetch: list[ModuleState] | None = None
        self.backward_began = False
        self.device = torch.device("cpu")
        if unit is not None:
            unit.on_complete = self._grads_complete

    # ---- forward
    def _begin(self) -> None:
        """On the first run: finds out who is the root and which units belong to it."""
        if self.root is not None:
            return
        members = [state for one in self.module.modules() if (state := state_of(one)) is not None]
        self.is_root = True
        root = _Root(members)
        for member in members:
            if member is not self and member.is_root:
                raise RuntimeError(
                    "FSDP state has already been lazily initialized for a submodule; FSDP "
                    "requires running forward through the root module first"
                )
            member.root = root
            if member.reshard_after_forward is None:
                member.reshard_after_forward = member is not self

    def before_forward(self, module: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Gathers parameters, casts inputs."""
        self._begin()
        root = self.root
        if not root.in_backward:
            if self.is_root:
                root.order = []
            root.order.append(self)
        if self.policy.cast_forward_inputs and self.policy.param_dtype is not None:
            with torch.profiler.record_function("FSDP::cast_forward_inputs"):
                args, kwargs = _cast((args, kwargs), self.policy.param_dtype)
        if self.unit is not None:
            self.unit.gather()
            if not root.in_backward:
                for other in self.forward_prefetch:
                    if other.unit is not None:
                        other.unit.start_gather()
        return args, kwargs

    def after_forward(self, module: nn.Module, args: tuple, output: Any) -> Any:
        """Cuts parameters, and hooks the outputs to know when the backward pass comes."""
        root = self.root
        if self.unit is not None and not root.in_backward and self.reshard_after_forward:
            self.unit.cut()
        output = self._hook_outputs(output)
        if self.policy.output_dtype is not None:
            output = _cast(output, self.policy.output_dtype)
        return output

    def _hook_outputs(self, output: Any) -> Any:
        if not torch.is_grad_enabled():
            return output
        leaves, _ = tree_flatten(output)
        for tensor in leaves:
            if isinstance(tensor, Tensor) and tensor.requires_grad:
                tensor.register_hook(self._before_backward)
        return output

    # ---- backward
    def _before_backward(self, grad: Tensor) -> Tensor:
        root = self.root
        if not root.in_backward:
            root.in_backward = True
            torch.autograd.Variable._execution_engine.queue_callback(
                functools.partial(_end_backward, root)
            )
        if self.backward_began:
            return grad
        self.backward_began = True
        if self.unit is not None:
            self.unit.gather()
            self.unit.expect_grads()
        for other in self._next_in_backward():
            if other.unit is not None and not other.backward_began:
                other.unit.start_gather()
        return grad

    def _next_in_backward(self) -> list[ModuleState]:
        if self.backward_prefetch is not None:
            return self.backward_prefetch
        order = self.root.order
        at = next((i for i in range(len(order) - 1, -1, -1) if order[i] is self), 0)
        return [order[at - 1]] if at > 0 else []

    def _grads_complete(self, unit: Unit) -> None:
        """All gradients of the unit are there."""
        unit.reduce()
        if self.reshard_after_backward and not unit.has_frozen:
            unit.cut()

    def end_backward(self) -> None:
        """What is left at the end of a backward pass."""
        unit = self.unit
        self.backward_began = False
        if unit is None:
            return
        unit.reduce()
        if self.reshard_after_backward:
            unit.cut()
        unit.finish_reduce()


def _end_backward(root: _Root) -> None:
    root.in_backward = False
    for member in root.members:
        member.end_backward()


def _cast(values: Any, dtype: torch.dtype) -> Any:
    def one(value: Any) -> Any:
        if isinstance(value, Tensor) and value.is_floating_point() and value.dtype != dtype:
            return value.to(dtype)
        return value

    return tree_map(one, values)


# ---- the module's new methods --------------------------------------------------------------------
class UnshardHandle:
    """Parameters that are on their way to be whole."""

    def __init__(self, unit: Unit | None) -> None:
        self._unit = unit

    def wait(self) -> None:
        """Returns when the parameters are whole."""
        if self._unit is not None:
            self._unit.gather()
            self._unit = None


class FSDPModule:
    """What a module can do after fully_shard was called on it."""

    _fsdp_state: ModuleState

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A copy of such a module is one of its own class, without sharding."""
        return cls.__bases__[1](*args, **kwargs)

    def _states(self, recurse: bool = True) -> list[ModuleState]:
        if not recurse:
            return [self._fsdp_state]
        return [one._fsdp_state for one in self.modules() if isinstance(one, FSDPModule)]

    def _units(self, recurse: bool = True) -> Iterable[Unit]:
        return [state.unit for state in self._states(recurse) if state.unit is not None]

    def reshard(self) -> None:
        """Cuts the module's parameters and gives the whole ones back."""
        for unit in self._units(False):
            unit.cut()

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Makes the module's parameters whole."""
        unit = self._fsdp_state.unit
        if unit is not None:
            unit.start_gather()
        handle = UnshardHandle(unit)
        if async_op:
            return handle
        handle.wait()
        return None

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Whether the next backward pass is the last of a step."""
        state = self._fsdp_state
        if state.root is not None:
            state.root.last_backward = is_last_backward

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Whether gradients are reduced; without, they are added up on each process."""
        for unit in self._units(recurse):
            unit.reduce_grads = unit.all_reduce_grads = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether gradients are reduced over the processes that have the same part."""
        for unit in self._units(recurse):
            unit.all_reduce_grads = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether whole parameters are given back after forward."""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(
                f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}"
            )
        for state in self._states(recurse):
            state.reshard_after_forward = reshard_after_forward

    def set_reshard_after_backward(
        self, reshard_after_backward: bool, *, recurse: bool = True
    ) -> None:
        """Whether whole parameters are given back after backward."""
        for state in self._states(recurse):
            state.reshard_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Which modules' parameters are gathered while this one runs forward."""
        self._fsdp_state.forward_prefetch = _states_of(modules)

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Which modules' parameters are gathered while this one runs backward."""
        self._fsdp_state.backward_prefetch = _states_of(modules)

    def set_gradient_divide_factor(self, factor: float) -> None:
        """By what gradients are divided, in the place of the number of processes."""
        for unit in self._units(False):
            unit.divide_by = float(factor)

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self.reshard()
        result = super()._apply(*args, **kwargs)
        for unit in self._units(False):
            for parameter in unit.parameters:
                parameter.refresh()
        return result


def _states_of(modules: list[FSDPModule]) -> list[ModuleState]:
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"fully_shard was not called on {module}")
    return [module._fsdp_state for module in modules]


_classes: dict[type, type] = {}


def _class_of(base: type) -> type:
    """The class that a module of class `base` gets."""
    made = _classes.get(base)
    if made is None:
        body = {"__module__": base.__module__, "__deepcopy__": _no_copy}
        made = _classes[base] = type(f"FSDP{base.__name__}", (FSDPModule, base), body)
    return made


def _no_copy(*args: Any, **kwargs: Any) -> None:
    raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


def fully_shard(
    module: nn.Module | list[nn.Module],
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[nn.Parameter], Shard | None] | None = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: set[nn.Parameter] | None = None,
) -> Any:
    """Shards the parameters of a module that no call on a submodule has sharded. On a mesh of two
    dimensions they are replicated along the first. The module's class becomes one that has the
    methods of FSDPModule."""
    modules = list(module) if isinstance(module, (list, tuple)) else [module]
    for one in modules:
        if isinstance(one, (nn.ModuleList, nn.ModuleDict)):
            raise ValueError(
                f"fully_shard does not support containers that do not implement forward: {one}"
            )
        if isinstance(one, FSDPModule):
            raise AssertionError(
                "Each distinct composable distributed API can only be applied to a module once: "
                "fully_shard was called on this module already"
            )
    info = _mesh.checked(mesh or _mesh.default_mesh())
    kind = info.mesh.device_type
    device = (
        torch.device(kind, torch.cuda.current_device()) if kind == "cuda" else torch.device(kind)
    )
    policy = mp_policy or MixedPrecisionPolicy()
    if isinstance(reshard_after_forward, int) and not isinstance(reshard_after_forward, bool):
        if reshard_after_forward < 1 or info.shard_size % reshard_after_forward:
            raise ValueError(
                f"If reshard_after_forward is an int, it should be a factor of "
                f"{info.shard_size}, not {reshard_after_forward}"
            )
        reshard_after_forward = reshard_after_forward != 1 or None
    unit = _make_unit(
        modules, info, shard_placement_fn, policy, offload_policy or OffloadPolicy(),
        ignored_params or set(), device,
    )  # fmt: skip
    state = ModuleState(modules[0], unit, policy)
    state.device = device
    state.reshard_after_forward = reshard_after_forward
    _install(modules, state)
    return module


def _make_unit(
    modules: list[nn.Module],
    info: _mesh.MeshInfo,
    place: Callable | None,
    policy: MixedPrecisionPolicy,
    offload: OffloadPolicy,
    ignored: set[nn.Parameter],
    device: torch.device,
) -> Unit | None:
    places: dict[int, list[tuple[nn.Module, str]]] = {}
    found: dict[int, nn.Parameter] = {}
    for one in modules:
        for owner, name in managed(one, ignored):
            parameter = owner._parameters[name]
            where = places.setdefault(id(parameter), [])
            if (owner, name) not in where:
                where.append((owner, name))
            found[id(parameter)] = parameter
        _move_others(one, ignored, device)
    parameters = []
    for key, parameter in found.items():
        if device.type != "meta" and not parameter.is_meta and parameter.device.type != device.type:
            parameter = nn.Parameter(parameter.data.to(device), parameter.requires_grad)
        placement = place(parameter) if place is not None else None
        parameters.append(
            ShardedParameter(parameter, places[key], info, placement, policy, offload, device)
        )
    return Unit(parameters, info, policy, device) if parameters else None


def _move_others(module: nn.Module, ignored: set[nn.Parameter], device: torch.device) -> None:
    """Buffers come to the device; they are not sharded."""
    for one in module.modules():
        for name, buffer in one._buffers.items():
            if buffer is not None and not buffer.is_meta and buffer.device.type != device.type:
                one._buffers[name] = buffer.to(device)


def _install(modules: list[nn.Module], state: ModuleState) -> None:
    """Puts the hooks around a module; around several that form a unit, around the first and last
    that run."""
    first, last = modules[0], modules[-1]
    first.register_forward_pre_hook(state.before_forward, prepend=True, with_kwargs=True)
    last.register_forward_hook(state.after_forward, prepend=False)
    for module in modules:
        module.__class__ = _class_of(type(module))
        module._fsdp_state = state
        module.register_state_dict_pre_hook(_before_state_dict)
        module.register_load_state_dict_pre_hook(_before_load)
        module.register_load_state_dict_post_hook(_after_load)


def _before_state_dict(module: nn.Module, *args: Any) -> None:
    module.reshard()


def _before_load(module: nn.Module, *args: Any) -> None:
    module.reshard()


def _after_load(module: nn.Module, *args: Any) -> None:
    for unit in module._units(False):
        for parameter in unit.parameters:
            parameter.refresh()


def register_fsdp_forward_method(module: nn.Module, method_name: str) -> None:
    """Makes a method of a sharded module one that gathers parameters as forward does."""
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    method = getattr(module, method_name)

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        state = module._fsdp_state
        args, kwargs = state.before_forward(module, args, kwargs)
        return state.after_forward(module, args, method(*args, **kwargs))

    setattr(module, method_name, wrapped)
