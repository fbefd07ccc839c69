"""Tensors of a module computed from other tensors: `layer.weight` as a function of its parameters.

A parametrized tensor becomes a property of a class made for that one module; what it is computed
from moves to `module.parametrizations.<name>`. The class is made anew whenever the set of names
changes, so that copies of a module, which share its class, are not disturbed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any as _Any

import torch
from torch import Tensor
from torch.nn.modules.container import ModuleDict, ModuleList
from torch.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_depth = 0
_cache = {}


@contextmanager
def cached() -> _Any:
    """Within it, a parametrized tensor is computed once and then remembered."""
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


def _register(module, name, tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check_same(old, new, shapes) -> None:
    """Refuses a parametrization that changes what the tensor looks like from outside."""
    what = "Registering a parametrization may not change the {} of the tensor, unless {}"
    for attribute in ("dtype", "shape"):
        before, after = getattr(old, attribute), getattr(new, attribute)
        if before != after:
            raise ValueError(what.format(attribute, shapes(attribute, before, after)))


class ParametrizationList(ModuleList):
    """The functions a tensor goes through, and the tensor or tensors they start from."""

    def __init__(self, modules, original, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        with torch.no_grad():
            start = self._start_of(original)
        self.is_tensor = isinstance(start, Tensor)
        self.ntensors = 1 if self.is_tensor else len(start)
        before = original.detach().clone() if not unsafe else original
        if self.is_tensor:
            if start.dtype != original.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\n"
                    f"right_inverse(original).dtype: {start.dtype}"
                )
            # The same object, so that an optimizer that holds it goes on.
            if start is not original:
                original.data = start.detach()
            _register(self, "original", original)
        else:
            for i, part in enumerate(start):
                self._register_part(i, part, original)
        if not unsafe:
            self._check_output(before)

    def _start_of(self, original) -> Tensor | tuple[Tensor, Tensor]:
        start = original
        for module in reversed(self):
            if hasattr(module, "right_inverse"):
                try:
                    start = module.right_inverse(start)
                except NotImplementedError:
                    continue
        if not isinstance(start, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(start).__name__}"
            )
        return start

    def _register_part(self, i, part, original) -> None:
        if not isinstance(part, Tensor):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got element {i} of the sequence with type {type(part).__name__}."
            )
        part = part.detach()
        if part is original or part.data_ptr() == original.data_ptr():
            part = part.clone()
        if isinstance(original, Parameter):
            part = Parameter(part, requires_grad=original.requires_grad)
        _register(self, f"original{i}", part)

    def _check_output(self, before) -> None:
        with torch.no_grad():
            after = self()
        if not isinstance(after, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
        _check_same(
            before,
            after,
            lambda name, old, new: (
                f"`unsafe` flag is enabled.\nunparametrized {name}: {old}\n"
                f"parametrized {name}: {new}"
            ),
        )

    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def forward(self) -> _Any:
        """The tensor as the module sees it."""
        first, *others = self
        value = first(*self._originals())
        for module in others:
            value = module(value)
        return value

    def right_inverse(self, value) -> _Any:
        """Sets the originals to what makes the tensor equal to a value."""
        with torch.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            values = [value] if self.is_tensor else list(value)
            if len(values) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(values)}."
                )
            for original, new in zip(self._originals(), values, strict=True):
                if not isinstance(new, Tensor):
                    raise ValueError(
                        f"`right_inverse` should return a tensor. Got {type(new).__name__}"
                    )
                if original.dtype != new.dtype:
                    raise ValueError(
                        "The tensor returned by `right_inverse` has dtype "
                        f"{new.dtype} while the original has dtype {original.dtype}"
                    )
                original.data = new.detach().clone()


def _property(name):
    def get(self) -> Tensor:
        parametrization = self.parametrizations[name]
        if not _cache_depth:
            return parametrization()
        if torch.jit.is_tracing():
            raise RuntimeError("Cannot trace a model while caching the parametrizations.")
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def set_(self, value) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, set_)


def _refuse_pickling(self):
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _deepcopy(self, memo):
    copied = memo.get(id(self))
    if copied is None:
        copied = memo[id(self)] = self.__new__(type(self))
        vars(copied).update(deepcopy(vars(self), memo))
    return copied


def _set_class(module, base) -> None:
    """Gives the module a class of its own with one property for each parametrized tensor."""
    members = {"__getstate__": _refuse_pickling, "__module__": __name__}
    if not hasattr(base, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy
    members.update((name, _property(name)) for name in module.parametrizations)
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), members)


def is_parametrized(module, tensor_name=None) -> _Any:
    """Whether a module has parametrized tensors, or that one."""
    # Looked up without getattr, which would compute a property of that name.
    lists = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(lists, ModuleDict):
        return False
    return len(lists) > 0 if tensor_name is None else tensor_name in lists


def type_before_parametrizations(module) -> _Any:
    """The module's class before any of its tensors was parametrized."""
    return module.__class__.__bases__[0] if is_parametrized(module) else type(module)


def register_parametrization(module, tensor_name, parametrization, *, unsafe: bool = False):
    """Makes a parameter or buffer the output of a module applied to it."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        _append(module, tensor_name, parametrization, unsafe)
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        base = type_before_parametrizations(module)
        functions = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.parametrizations = ModuleDict()
        module.parametrizations[tensor_name] = functions
        _set_class(module, base)
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def _check_inverse(inverse, before, tensor_name) -> None:
    """What right_inverse gives has to be such a tensor as the parametrization is given."""
    if not isinstance(inverse, Tensor):
        raise ValueError(
            f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}"
        )
    for name in ("dtype", "shape"):
        old, new = getattr(before, name), getattr(inverse, name)
        if old != new:
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {name} "
                f"as module.{tensor_name}, unless the `unsafe` flag is enabled.\n"
                f"module.{tensor_name}.{name}: {old}\nreturned {name}: {new}"
            )


def _append(module, tensor_name, parametrization, unsafe) -> None:
    functions = module.parametrizations[tensor_name]
    if not unsafe:
        with torch.no_grad():
            before = getattr(module, tensor_name)
            after = parametrization(before)
        if not isinstance(after, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
        _check_same(
            before,
            after,
            lambda name, old, new: (
                f"the `unsafe` flag is enabled.\nmodule.{tensor_name}.{name}: {old}\n"
                f"parametrization(module.{tensor_name}).{name}: {new}"
            ),
        )
        if hasattr(parametrization, "right_inverse"):
            with torch.no_grad():
                _check_inverse(parametrization.right_inverse(after), before, tensor_name)
    functions.append(parametrization)
    functions.unsafe |= unsafe


def remove_parametrizations(module, tensor_name, leave_parametrized: bool = True):
    """Makes the tensor a plain one again, with its computed value or with its original one."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    base = type_before_parametrizations(module)
    functions = module.parametrizations[tensor_name]
    if functions.is_tensor:
        original = functions.original
        if leave_parametrized:
            with torch.no_grad():
                value = getattr(module, tensor_name)
                if value is not original:
                    original.data = value.detach()
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        trains = any(part.requires_grad for part in functions._originals())
        original = Parameter(value.detach()) if trains else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    del module.parametrizations[tensor_name]
    if len(module.parametrizations):
        _set_class(module, base)
    else:
        del module.parametrizations
        module.__class__ = base
    _register(module, tensor_name, original)
    return module


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None) -> _Any:
    """Gives one module the parametrizations, and the originals, of another."""
    if not is_parametrized(from_module):
        return to_module
    if tensor_name is not None and not is_parametrized(from_module, tensor_name):
        raise ValueError(f"Cannot transfer parametrization {tensor_name}: it does not exist")
    names = [tensor_name] if tensor_name is not None else list(from_module.parametrizations)
    for name in names:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for function in source:
            register_parametrization(to_module, name, function)
        target = to_module.parametrizations[name]
        for kept in source._originals() if source.is_tensor else ():
            target.original = kept
        if not source.is_tensor:
            for i, kept in enumerate(source._originals()):
                setattr(target, f"original{i}", kept)
    return to_module
