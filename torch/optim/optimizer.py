"""Optimizer: parameter groups, state, hooks, and saving in PyTorch's format."""

from __future__ import annotations

import collections.abc
import typing
import warnings
from collections import OrderedDict, defaultdict
from copy import deepcopy
from itertools import chain

import torch
from torch.optim._helpers import *  # noqa: F403 - for optimizers written elsewhere
from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype
from torch.utils.hooks import RemovableHandle

if typing.TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Optimizer", "register_optimizer_step_pre_hook", "register_optimizer_step_post_hook"]


# What an optimizer is made from.
ParamsT = (
    collections.abc.Iterable[torch.Tensor]
    | collections.abc.Iterable[dict[str, typing.Any]]
    | collections.abc.Iterable[tuple[str, torch.Tensor]]
)


class _RequiredParameter:
    """Stands for a setting without a default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()
_global_pre_hooks = OrderedDict()
_global_post_hooks = OrderedDict()


def register_optimizer_step_pre_hook(hook) -> RemovableHandle:
    """hook(optimizer, args, kwargs) before every optimizer's step."""
    handle = RemovableHandle(_global_pre_hooks)
    _global_pre_hooks[handle.id] = hook
    return handle


def register_optimizer_step_post_hook(hook) -> RemovableHandle:
    """hook(optimizer, args, kwargs) after every optimizer's step."""
    handle = RemovableHandle(_global_post_hooks)
    _global_post_hooks[handle.id] = hook
    return handle


_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


def _listed(params) -> dict[str, list]:
    """The parameters that a group was given: one, several, or pairs with names, which are then
    listed beside them."""
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the "
            "ordering of tensors in sets will change between runs. Please use a list instead."
        )
    params = [params] if isinstance(params, torch.Tensor) else list(params)
    named = {isinstance(param, tuple) for param in params}
    if len(named) == 2:
        raise ValueError(
            "all optimizer params should be with/without names. Some param names are missing"
        )
    if named != {True}:
        return {"params": params}
    names, tensors = (list(column) for column in zip(*params, strict=True))
    return {"params": tensors, "param_names": names}


class Optimizer:
    """Base class: subclasses define `step`, which updates parameters from their gradients."""

    state: defaultdict[torch.Tensor, typing.Any]
    param_groups: list[dict[str, typing.Any]]
    defaults: dict[str, typing.Any]

    def __init__(self, params: ParamsT, defaults: dict[str, typing.Any]) -> None:
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, torch.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                "but got " + torch.typename(params)
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        # Hooks surround every class's own step without its author's help.
        if "step" in cls.__dict__:
            cls.step = cls.profile_hook_step(cls.step)

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices: bool = False):
        """Lists of equally many tensors by the device and dtype of the first list's."""
        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    def _patch_step_function(self) -> None:
        """What a class that does not call __init__ calls instead, to have its hooks run: one whose
        step was put on it after its definition is wrapped here."""
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"
        if not getattr(type(self).step, "hooked", False):
            type(self).step = self.profile_hook_step(type(self).step)

    @staticmethod
    def profile_hook_step(func) -> Callable[..., object]:
        """Wraps a step method so that hooks run around it."""
        if getattr(func, "hooked", False):
            return func

        def step(self, *args, **kwargs) -> object:
            own = self.__dict__.get("_optimizer_step_pre_hooks")
            # A wrapper around another optimizer that never ran __init__ has no hooks: those of the
            # optimizer inside run there.
            if own is None or not (
                own or self._optimizer_step_post_hooks or _global_pre_hooks or _global_post_hooks
            ):
                return func(self, *args, **kwargs)
            for hook in chain(_global_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
                answer = hook(self, args, kwargs)
                if answer is None:
                    continue
                if not (isinstance(answer, tuple) and len(answer) == 2):
                    raise RuntimeError(
                        f"{func} must return None or a tuple of (new_args, new_kwargs), but got "
                        f"{answer}."
                    )
                args, kwargs = answer
            out = func(self, *args, **kwargs)
            for hook in chain(
                self._optimizer_step_post_hooks.values(), _global_post_hooks.values()
            ):
                hook(self, args, kwargs)
            return out

        step.hooked = True
        step.__doc__ = func.__doc__
        step.__wrapped__ = func
        return step

    def __getstate__(self) -> dict[str, object]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        blocks = []
        for i, group in enumerate(self.param_groups):
            lines = [f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
            blocks.append(f"Parameter Group {i}\n" + "".join(lines))
        return f"{type(self).__name__} (\n" + "\n".join(blocks) + ")"

    # ---- hooks
    def _add_hook(self, store, hook, prepend=False) -> RemovableHandle:
        hooks = getattr(self, store)
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def register_step_pre_hook(self, hook) -> RemovableHandle:
        """hook(optimizer, args, kwargs) before step."""
        return self._add_hook("_optimizer_step_pre_hooks", hook)

    def register_step_post_hook(self, hook) -> RemovableHandle:
        """hook(optimizer, args, kwargs) after step."""
        return self._add_hook("_optimizer_step_post_hooks", hook)

    def register_state_dict_pre_hook(self, hook, prepend: bool = False):
        """hook(optimizer) before state_dict."""
        return self._add_hook("_optimizer_state_dict_pre_hooks", hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend: bool = False):
        """hook(optimizer, state_dict) after state_dict; may answer another."""
        return self._add_hook("_optimizer_state_dict_post_hooks", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend: bool = False):
        """hook(optimizer, state_dict) before loading; may answer another."""
        return self._add_hook("_optimizer_load_state_dict_pre_hooks", hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend: bool = False):
        """hook(optimizer) after loading."""
        return self._add_hook("_optimizer_load_state_dict_post_hooks", hook, prepend)

    # ---- groups
    def add_param_group(self, param_group) -> None:
        """Adds a group of parameters with settings of its own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        listed = _listed(param_group["params"])
        names = "param_names" in listed
        if self.param_groups and names != ("param_names" in self.param_groups[0]):
            verb = "with" if names else "without"
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{verb} names to the optimizer"
            )
        param_group.update(listed)
        for name, default in self.defaults.items():
            if param_group.setdefault(name, default) is required:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    + name
                )
        params = param_group["params"]
        for param in params:
            self._check_param(param)
        distinct = set(params)
        if len(distinct) < len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error",
                stacklevel=3,
            )
        if not all(distinct.isdisjoint(group["params"]) for group in self.param_groups):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _check_param(self, param) -> None:
        if not isinstance(param, torch.Tensor):
            raise TypeError(
                "optimizer can only optimize Tensors, but one of the params is "
                + torch.typename(param)
            )
        has_grad = param.is_leaf or param.retains_grad
        if not has_grad and not self.defaults.get("differentiable"):
            raise ValueError("can't optimize a non-leaf Tensor")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters."""
        for group in self.param_groups:
            torch._utils._clear_grads(group["params"], set_to_none)

    def step(self, closure: Callable[[], typing.Any] | None = None) -> typing.Any:
        """One update; subclasses define it."""
        raise NotImplementedError

    # ---- saving
    def state_dict(self) -> dict:
        """{'state': ..., 'param_groups': ...}, parameters named by their position."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        index, groups = {}, []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for param in group["params"]:
                index.setdefault(id(param), len(index))
            packed["params"] = [index[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {
            (index[id(key)] if isinstance(key, torch.Tensor) else key): value
            for key, value in self.state.items()
        }
        out = {"state": state, "param_groups": groups}
        return self._filtered(self._optimizer_state_dict_post_hooks, out)

    def _filtered(self, hooks, value):
        """A value after hooks that may replace it."""
        for hook in hooks.values():
            replaced = hook(self, value)
            value = value if replaced is None else replaced
        return value

    @staticmethod
    def _cast(param, value, key, group):
        """A state tensor with the parameter's dtype and device; step counts stay what they are."""
        if isinstance(value, torch.Tensor):
            if key == "step":
                capturable = group.get("capturable") or group.get("fused")
                if capturable and param.device.type != "cpu":
                    return value.to(dtype=torch.float32, device=param.device)
                return value
            if param.is_floating_point():
                return value.to(dtype=param.dtype, device=param.device)
            return value.to(device=param.device)
        if isinstance(value, dict):
            return {k: Optimizer._cast(param, v, k, group) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(Optimizer._cast(param, v, key, group) for v in value)
        return value

    def load_state_dict(self, state_dict) -> None:
        """Takes over settings and state of a saved optimizer of the same shape."""
        hooks = self._optimizer_load_state_dict_pre_hooks
        state_dict = self._filtered(hooks, dict(state_dict))
        groups = self.param_groups
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for group, saved in zip(groups, saved_groups, strict=False):
            if len(group["params"]) != len(saved["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )
        owners = {}
        for group, saved in zip(groups, saved_groups, strict=False):
            for saved_id, param in zip(saved["params"], group["params"], strict=False):
                owners[saved_id] = (param, group)
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in owners:
                param, group = owners[key]
                state[param] = {k: self._cast(param, v, k, group) for k, v in value.items()}
            else:
                state[key] = value
        merged = []
        for group, saved in zip(groups, saved_groups, strict=False):
            saved["params"] = group["params"]
            if "param_names" in group and "param_names" not in saved:
                saved["param_names"] = group["param_names"]
            merged.append(saved)
        self.__setstate__({"state": state, "param_groups": merged})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)


def run_closure(closure) -> object:
    """The loss of a closure evaluated with gradients on, or None."""
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()
