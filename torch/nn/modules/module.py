"""Module: the base class of everything that has parameters. What a module owns (parameters,
buffers, submodules) lives in dictionaries, found by attribute access; saving and loading stand in
module_state.py, hooks in module_hooks.py."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import _C
from torch.nn.modules import module_hooks
from torch.nn.modules.module_hooks import (
    HooksMixin,
    _WrappedHook,  # noqa: F401
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.nn.modules.module_hooks import (  # noqa: F401
    global_buffer_hooks as _global_buffer_registration_hooks,
)
from torch.nn.modules.module_hooks import (  # noqa: F401
    global_module_hooks as _global_module_registration_hooks,
)
from torch.nn.modules.module_hooks import (  # noqa: F401
    global_parameter_hooks as _global_parameter_registration_hooks,
)
from torch.nn.modules.module_state import (  # noqa: F401
    _EXTRA_STATE_KEY_SUFFIX,
    StateMixin,
    _IncompatibleKeys,
)
from torch.nn.parameter import Buffer, Parameter

__all__ = [
    "Module",
    "_IncompatibleKeys",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


def _addindent(text, spaces) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


def _parse_to(
    *args, device=None, dtype=None, non_blocking=False, copy=False, memory_format=None
) -> tuple[torch.device | None, torch.dtype | None, bool, torch.memory_format | None]:
    """The arguments of Module.to as (device, dtype, non_blocking, memory_format): a tensor, a
    dtype, or a device and a dtype, each followed by non_blocking."""
    rest = list(args)
    if rest and isinstance(rest[0], torch.Tensor):
        device, dtype = rest[0].device, rest.pop(0).dtype
    elif rest and isinstance(rest[0], torch.dtype):
        dtype = rest.pop(0)
    elif rest:
        device = rest.pop(0)
        if isinstance(device, bool) or not isinstance(device, (torch.device, str, int, type(None))):
            raise TypeError(f"to(): a device must be a torch.device or a str, not {device!r}")
        if rest:
            dtype = rest.pop(0)
    if rest:
        non_blocking = rest.pop(0)
    if (
        rest
        or not isinstance(non_blocking, bool)
        or not isinstance(dtype, (torch.dtype, type(None)))
    ):
        kinds = ", ".join(type(a).__name__ for a in args)
        raise TypeError(
            f"to() received an invalid combination of arguments - got ({kinds}), but expected "
            "(device, dtype, non_blocking), (dtype, non_blocking) or (tensor, non_blocking)"
        )
    return None if device is None else torch.device(device), dtype, non_blocking, memory_format


_M = TypeVar("_M", bound="Module")


def _forward_unimplemented(self, *input):
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


# Subclasses that override Module.to read its arguments by this name.
_C._nn._parse_to = _parse_to


class _CallSignature:
    """What inspect.signature returns for a module: calling is C, which says nothing of itself. The
    signature of a class is that of its __init__ and one with a __call__ in Python has that, so
    there the attribute is not to be found."""

    def __get__(self, instance, owner=None) -> Any:
        if instance is None or type(instance).__call__ is not _C._ModuleBase.__call__:
            raise AttributeError("__signature__")
        import inspect

        kinds = {"args": inspect.Parameter.VAR_POSITIONAL, "kwargs": inspect.Parameter.VAR_KEYWORD}
        return inspect.Signature([inspect.Parameter(name, kind) for name, kind in kinds.items()])


def _changed(tensor, fn) -> torch.Tensor:
    return fn(tensor)


def _changed_parameter(param, fn) -> torch.Tensor:
    """A parameter whose values and gradient a function has changed: the same one, or another where
    torch.__future__ asks for that."""
    grad = param.grad
    with torch.no_grad():
        values, grad = fn(param), None if grad is None else fn(grad)
    if torch.__future__.get_overwrite_module_params_on_conversion():
        param = Parameter(values, param.requires_grad)
    elif hasattr(type(values), "__tensor_flatten__"):
        # The parts of such a tensor are attributes: they change with it, the object stays.
        param.grad = None
        torch.utils.swap_tensors(param, Parameter(values, param.requires_grad))
    else:
        param.data = values
    if grad is not None:
        param.grad = None  # the old one need not fit the new values
        param.grad = grad
    return param


class Module(HooksMixin, StateMixin, torch._C._ModuleBase):
    """A part of a network. Subclasses assign parameters, buffers and other modules as attributes in
    `__init__` and define `forward`."""

    # The base in C stands last: Python lets `__class__` be assigned between classes whose layouts
    # grow from the same base, which then is `object`, as for a class with a mixin in front.

    dump_patches = False
    _version = 1
    training: bool
    call_super_init = False
    _compiled_call_impl = None
    __signature__ = _CallSignature()

    def __init__(self, *args, **kwargs) -> None:
        if not self.call_super_init and kwargs:
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                f"'{next(iter(kwargs))}'"
            )
        if not self.call_super_init and args:
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but "
                f"{len(args) + 1} were given"
            )
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        state["_modules"] = {}
        self._init_hooks()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = _forward_unimplemented

    # ---- calling: Module.__call__ is C (torch/csrc/python/nn/module_base.cpp) and runs
    # module_hooks.call_with_hooks when there are hooks, else forward alone.
    def _call_impl(self, *args, **kwargs):
        return module_hooks.call_with_hooks(self, args, kwargs)

    def compile(self, *args, **kwargs) -> None:
        """Runs calls of this module through torch.compile."""
        self._compiled_call_impl = torch.compile(self._call_impl, *args, **kwargs)

    # ---- registration
    def _check_name(self, name, kind, present) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {torch.typename(name)}")
        if "." in name:
            detail = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{detail}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in present:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter, reachable as an attribute of that name. None reserves the name."""
        self._check_name(name, "parameter", self.__dict__.get("_parameters", ()))
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{torch.typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                f"created explicitly. To express '{name}' as a function of another Tensor, compute "
                "the value in the forward() method."
            )
        hooks = module_hooks.global_parameter_hooks
        self._parameters[name] = self._after_hooks(hooks, name, param)

    def _after_hooks(self, hooks, name, value):
        """What is registered under a name, after hooks that may replace it."""
        for hook in hooks.values():
            replaced = hook(self, name, value)
            value = value if replaced is None else replaced
        return value

    def register_buffer(
        self, name: str, tensor: torch.Tensor | None, persistent: bool = True
    ) -> None:
        """Adds a tensor that is part of the module's state but no parameter. Buffers that are not
        persistent are left out of the state_dict."""
        self._check_name(name, "buffer", self.__dict__.get("_buffers", ()))
        if tensor is not None and not isinstance(tensor, torch.Tensor):
            raise TypeError(
                f"cannot assign '{torch.typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        hooks, hidden = module_hooks.global_buffer_hooks, self._non_persistent_buffers_set
        self._buffers[name] = self._after_hooks(hooks, name, tensor)
        (hidden.discard if persistent else hidden.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule, reachable as an attribute of that name."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{torch.typename(module)} is not a Module subclass")
        self._check_name(name, "module", self.__dict__.get("_modules", ()))
        self._modules[name] = self._after_hooks(module_hooks.global_module_hooks, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Another name of add_module."""
        self.add_module(name, module)

    # ---- lookup by path
    def get_submodule(self, target: str) -> Module:
        """The submodule at a dotted path; "" is the module itself."""
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict: bool = False) -> None:
        """Replaces the submodule at a dotted path."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_by_path(self, target, kind, accept) -> torch.Tensor:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        value = getattr(module, name)
        if not accept(module, name, value):
            raise AttributeError(f"`{name}` is not {kind}")
        return value

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        return self._get_by_path(
            target, "an nn.Parameter", lambda m, name, value: isinstance(value, Parameter)
        )

    def get_buffer(self, target: str) -> torch.Tensor:
        """The buffer at a dotted path."""
        return self._get_by_path(target, "a buffer", lambda m, name, value: name in m._buffers)

    def get_extra_state(self) -> Any:
        """What a subclass saves beyond tensors; overridden together with set_extra_state."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called."
        )

    def set_extra_state(self, state) -> None:
        """Takes back what get_extra_state gave."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called."
        )

    # ---- attributes
    def __setattr__(self, name, value) -> None:
        state = self.__dict__
        params = state.get("_parameters")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
            return
        if params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{torch.typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
            return
        modules = state.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            for hook in module_hooks.global_module_hooks.values():
                replaced = hook(self, name, value)
                if replaced is not None:
                    value = replaced
            modules[name] = value
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{torch.typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            modules[name] = value
            return
        buffers = state.get("_buffers")
        if isinstance(value, Buffer) or (buffers is not None and name in buffers):
            self._set_buffer(name, value, buffers)
            return
        super().__setattr__(name, value)

    def _forget(self, name, keep) -> None:
        state = self.__dict__
        state.pop(name, None)
        for store in ("_parameters", "_buffers", "_modules"):
            if store != keep and state.get(store):
                state[store].pop(name, None)
        if keep != "_buffers":
            state["_non_persistent_buffers_set"].discard(name)

    def _set_buffer(self, name, value, buffers) -> None:
        if value is not None and not isinstance(value, torch.Tensor):
            raise TypeError(
                f"cannot assign '{torch.typename(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if buffers is None:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        if isinstance(value, Buffer) and name not in buffers:
            for store in (self._parameters, self._modules):
                store.pop(name, None)
            # A subclass's register_buffer may take no third argument.
            self.register_buffer(name, value, *(() if value.persistent else (False,)))
            return
        if isinstance(value, Buffer):
            hidden = self._non_persistent_buffers_set
            (hidden.discard if value.persistent else hidden.add)(name)
        for hook in module_hooks.global_buffer_hooks.values():
            replaced = hook(self, name, value)
            if replaced is not None:
                value = replaced
        buffers[name] = value

    def __delattr__(self, name) -> None:
        for store in (self._parameters, self._buffers, self._modules):
            if name in store:
                del store[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__}
        names.update(self._parameters, self._buffers, self._modules)
        return sorted(name for name in names if not name[:1].isdigit())

    # ---- walking
    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield (path + "." if path else "") + name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(path, parameter) of this module and, by default, all below it."""
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and, by default, of all below it."""
        return (param for _, param in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """(path, buffer) of this module and, by default, all below it."""
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[torch.Tensor]:
        """The buffers of this module and, by default, of all below it."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) of the direct submodules, each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct submodules."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """(path, module) of this module and all below it."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        stem = prefix and prefix + "."
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(memo, stem + name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it."""
        return (m for _, m in self.named_modules(remove_duplicate=remove_duplicate))

    # ---- changing everything at once
    def apply(self: _M, fn: Callable[[Module], None]) -> _M:
        """Calls fn on every submodule, children first, then on this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn, recurse=True):
        if recurse:
            for module in self.children():
                module._apply(fn)
        for held, change in ((self._parameters, _changed_parameter), (self._buffers, _changed)):
            for name, tensor in held.items():
                if tensor is not None:
                    held[name] = change(tensor, fn)
        return self

    def _cast_floating(self, dtype):
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self: _M) -> _M:
        """Floating point parameters and buffers as float32."""
        return self._cast_floating(torch.float32)

    def double(self: _M) -> _M:
        """Floating point parameters and buffers as float64."""
        return self._cast_floating(torch.float64)

    def half(self: _M) -> _M:
        """Floating point parameters and buffers as float16."""
        return self._cast_floating(torch.float16)

    def bfloat16(self: _M) -> _M:
        """Floating point parameters and buffers as bfloat16."""
        return self._cast_floating(torch.bfloat16)

    def type(self: _M, dst_type: Any) -> _M:
        """All parameters and buffers as dst_type."""
        return self._apply(lambda t: t.type(dst_type))

    def _move(self, method, device):
        """Moves to a device by the method of tensors that is named after its kind."""
        return self._apply(lambda t: getattr(t, method)(device))

    def cpu(self: _M) -> _M:
        """Moves parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self: _M, device: Any = None) -> _M:
        """Moves parameters and buffers to a GPU."""
        return self._move("cuda", device)

    def xpu(self, device=None) -> Any:
        """Moves parameters and buffers to an Intel GPU."""
        return self._move("xpu", device)

    def ipu(self, device=None) -> Any:
        """Moves parameters and buffers to an IPU."""
        return self._move("ipu", device)

    def mtia(self, device=None) -> Any:
        """Moves parameters and buffers to an MTIA device."""
        return self._move("mtia", device)

    def to_empty(self: _M, *, device: Any, recurse: bool = True) -> _M:
        """Moves to a device without copying the values."""
        return self._apply(lambda t: torch.empty_like(t, device=device), recurse=recurse)

    def to(self: _M, *args: Any, **kwargs: Any) -> _M:
        """Moves or casts parameters and buffers in place: to(device), to(dtype), to(tensor),
        to(memory_format=...). A dtype applies to floating point and complex values only."""
        device, dtype, non_blocking, format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )

        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development: some modules may not "
                "work as expected with complex parameters and buffers.",
                stacklevel=2,
            )

        def convert(t):
            cast = dtype if t.is_floating_point() or t.is_complex() else None
            try:
                if format is not None and t.dim() in (4, 5):
                    return t.to(device, cast, non_blocking, memory_format=format)
                return t.to(device, cast, non_blocking)
            except NotImplementedError as error:
                words = "Cannot copy out of meta tensor; no data!"
                if not str(error).startswith(words):
                    raise
                raise NotImplementedError(
                    f"{words} Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                ) from None

        return self._apply(convert)

    def share_memory(self: _M) -> _M:
        """Moves parameters and buffers to shared memory."""
        return self._apply(lambda t: t.share_memory_())

    def train(self: _M, mode: bool = True) -> _M:
        """Switches this module and all below it to training (or evaluation) mode."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: _M) -> _M:
        """Switches to evaluation mode."""
        return self.train(False)

    def requires_grad_(self: _M, requires_grad: bool = True) -> _M:
        """Sets requires_grad of all parameters."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters."""
        torch._utils._clear_grads(self.parameters(), set_to_none)

    # ---- printing and copying
    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What a subclass shows of itself between the brackets of its repr."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [
            f"({name}): " + _addindent(repr(module), 2) for name, module in self._modules.items()
        ]
        body = lines + children
        if not body:
            return self._get_name() + "()"
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        return self._get_name() + "(\n  " + "\n  ".join(body) + "\n)"

    def __setstate__(self, state) -> None:
        self.__dict__.update(state)
        self._fill_missing_hooks()

    def __getstate__(self) -> dict[str, object]:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def _replicate_for_data_parallel(self):
        # The copy shares what it does not list here; parameters are set by replicate().
        own = {"_buffers": {**self._buffers}, "_modules": {**self._modules}}
        replica = self.__new__(type(self))
        replica.__dict__ = {**self.__dict__, **own, "_parameters": {}, "_is_replica": True}
        return replica
