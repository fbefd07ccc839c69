"""Hooks of modules, and the call that runs them. A module without hooks never comes here."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections import OrderedDict
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

global_forward_hooks = OrderedDict()
global_forward_hooks_always_called = OrderedDict()
global_forward_hooks_with_kwargs = OrderedDict()
global_forward_pre_hooks = OrderedDict()
global_backward_hooks = OrderedDict()
global_backward_pre_hooks = OrderedDict()
global_parameter_hooks = OrderedDict()
global_buffer_hooks = OrderedDict()
global_module_hooks = OrderedDict()


def _register(hooks, hook) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_module_forward_pre_hook(hook) -> RemovableHandle:
    """A hook before every module's forward."""
    return _register(global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """A hook after every module's forward."""
    handle = _register(global_forward_hooks, hook)
    if with_kwargs:
        global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        global_forward_hooks_always_called[handle.id] = True
    return handle


def register_module_full_backward_hook(hook) -> RemovableHandle:
    """A hook when gradients with respect to any module's inputs are computed."""
    return _register(global_backward_hooks, hook)


register_module_backward_hook = register_module_full_backward_hook


def register_module_full_backward_pre_hook(hook) -> RemovableHandle:
    """A hook when gradients reach any module's outputs."""
    return _register(global_backward_pre_hooks, hook)


def register_module_parameter_registration_hook(hook) -> RemovableHandle:
    """A hook on every register_parameter."""
    return _register(global_parameter_hooks, hook)


def register_module_buffer_registration_hook(hook) -> RemovableHandle:
    """A hook on every register_buffer."""
    return _register(global_buffer_hooks, hook)


def register_module_module_registration_hook(hook) -> RemovableHandle:
    """A hook on every add_module."""
    return _register(global_module_hooks, hook)


_HOOK_DICTS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class HooksMixin:
    """Registration of a module's own hooks."""

    def _init_hooks(self) -> None:
        state = self.__dict__
        for name in _HOOK_DICTS:
            state[name] = OrderedDict()
        state["_is_full_backward_hook"] = None

    def _fill_missing_hooks(self) -> None:
        state = self.__dict__
        for name in _HOOK_DICTS:
            state.setdefault(name, OrderedDict())
        state.setdefault("_non_persistent_buffers_set", set())
        state.setdefault("_is_full_backward_hook", None)

    def _add_hook(self, store, hook, prepend=False, extras=()) -> RemovableHandle:
        hooks = getattr(self, store)
        handle = RemovableHandle(hooks, extra_dict=[getattr(self, name) for name in extras])
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def register_forward_pre_hook(
        self, hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """hook(module, args) before forward; may answer other arguments."""
        handle = self._add_hook(
            "_forward_pre_hooks", hook, prepend, ("_forward_pre_hooks_with_kwargs",)
        )
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(
        self, hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """hook(module, args, output) after forward; may answer another output."""
        handle = self._add_hook(
            "_forward_hooks",
            hook,
            prepend,
            ("_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
        )
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_full_backward_pre_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_output) when gradients reach the module's outputs."""
        return self._add_hook("_backward_pre_hooks", hook, prepend)

    def register_full_backward_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_input, grad_output) when the module's input gradients are there."""
        if self._is_full_backward_hook is False:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = True
        return self._add_hook("_backward_hooks", hook, prepend)

    def register_backward_hook(self, hook) -> Any:
        """The old form of register_full_backward_hook."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = False
        return self._add_hook("_backward_hooks", hook)

    def register_state_dict_pre_hook(self, hook) -> Any:
        """hook(module, prefix, keep_vars) before the state_dict is made."""
        return self._add_hook("_state_dict_pre_hooks", hook)

    def _register_state_dict_hook(self, hook) -> RemovableHandle:
        return self._add_hook("_state_dict_hooks", hook)

    def register_state_dict_post_hook(self, hook) -> Any:
        """hook(module, state_dict, prefix, local_metadata) after the state_dict was made."""
        hook._from_public_api = True
        return self._add_hook("_state_dict_hooks", hook)

    def register_load_state_dict_pre_hook(self, hook) -> RemovableHandle:
        """hook(module, state_dict, prefix, ...) before loading."""
        return self._add_hook("_load_state_dict_pre_hooks", _WrappedHook(hook, self))

    def _register_load_state_dict_pre_hook(self, hook, with_module=False) -> RemovableHandle:
        wrapped = _WrappedHook(hook, self if with_module else None)
        return self._add_hook("_load_state_dict_pre_hooks", wrapped)

    def register_load_state_dict_post_hook(self, hook) -> Any:
        """hook(module, incompatible_keys) after loading."""
        return self._add_hook("_load_state_dict_post_hooks", hook)


class _WrappedHook:
    """A hook that is told its module. Pickles of whole modules hold these, by PyTorch's name for
    the class and its state."""

    __module__ = "torch.nn.modules.module"

    def __init__(self, hook, module=None) -> None:
        self.hook = hook
        self.module = None if module is None else weakref.ref(module)

    def __call__(self, *args, **kwargs) -> Any:
        if self.module is None:
            return self.hook(*args, **kwargs)
        return self.hook(self.module(), *args, **kwargs)

    def __getstate__(self) -> Any:
        state = {"hook": self.hook, "with_module": self.module is not None}
        if self.module is not None:
            state["module"] = self.module()
        return state

    def __setstate__(self, state) -> None:
        self.hook = state["hook"]
        module = state.get("module")
        self.module = None if module is None else weakref.ref(module)


def _run_pre_hooks(module, args, kwargs):
    for hook_id, hook in (*global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()):
        if hook_id in module._forward_pre_hooks_with_kwargs:
            answer = hook(module, args, kwargs)
            if answer is None:
                continue
            if not (isinstance(answer, tuple) and len(answer) == 2):
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {answer}."
                )
            args, kwargs = answer
            continue
        answer = hook(module, args)
        if answer is not None:
            args = answer if isinstance(answer, tuple) else (answer,)
    return args, kwargs


def _run_forward_hook(
    module, hook_id, hook, args, kwargs, result
) -> torch.Tensor | dict[str, torch.Tensor]:
    with_kwargs = (
        hook_id in module._forward_hooks_with_kwargs or hook_id in global_forward_hooks_with_kwargs
    )
    answer = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
    return result if answer is None else answer


def call_with_hooks(module, args, kwargs) -> torch.Tensor | dict[str, torch.Tensor]:
    """forward with all hooks around it, backward hooks included."""
    ran = set()
    result = None
    try:
        args, kwargs = _run_pre_hooks(module, args, kwargs)
        backward = None
        own = tuple(module._backward_hooks.values())
        old = own if module._is_full_backward_hook is False else ()
        full = (*global_backward_hooks.values(), *(() if old else own))
        pre = (*global_backward_pre_hooks.values(), *module._backward_pre_hooks.values())
        if full or pre:
            from torch.utils.hooks import BackwardHook

            backward = BackwardHook(module, list(full), list(pre))
            args = backward.setup_input_hook(args)
        result = module.forward(*args, **kwargs)
        for hook_id, hook in (*global_forward_hooks.items(), *module._forward_hooks.items()):
            ran.add(hook_id)
            result = _run_forward_hook(module, hook_id, hook, args, kwargs, result)
        if old:
            _warn_of_old_hooks(args, result)
            _hook_last_node(module, old, result)
        return result if backward is None else backward.setup_output_hook(result)
    except Exception:
        _run_always_called(module, args, kwargs, result, ran)
        raise


def _warn_of_old_hooks(args, result) -> None:
    """Old backward hooks see one node: they miss gradients where that is not the whole module."""

    def warn(what: str, missing: str) -> None:
        warnings.warn(
            f"Using non-full backward hooks {what} is deprecated and will be removed in future "
            f"versions. This hook will be missing some {missing}. Please use "
            "register_full_backward_hook to get the documented behavior.",
            FutureWarning,
            stacklevel=4,
        )

    def tensors(value: object) -> bool:
        return isinstance(value, torch.Tensor) or (
            isinstance(value, tuple) and all(isinstance(v, torch.Tensor) for v in value)
        )

    if not tensors(result):
        return warn(
            "on a Module that does not return a single Tensor or a tuple of Tensors", "grad_output"
        )
    if not tensors(args):
        return warn(
            "on a Module that does not take as input a single Tensor or a tuple of Tensors",
            "grad_input",
        )
    outputs = (result,) if isinstance(result, torch.Tensor) else result
    nodes = {output.grad_fn for output in outputs} - {None}
    if len(nodes) > 1:
        return warn("when outputs are generated by different autograd Nodes", "grad_output")
    if nodes:
        (node,) = nodes
        before = {arg.grad_fn for arg in args} - {None}
        inner = {made for made, _ in node.next_functions} - {None}
        leaves = {fn for fn in inner if type(fn).__name__ == "AccumulateGrad"}
        if before and not inner - leaves <= before:
            warn("when the forward contains multiple autograd Nodes", "grad_input")
    return None


def _hook_last_node(module, hooks, result) -> None:
    """The old backward hooks: they see the gradients of the node that made the (first) result."""
    first = result
    while not isinstance(first, torch.Tensor):
        if isinstance(first, dict):
            tensors = [v for v in first.values() if isinstance(v, torch.Tensor)]
        else:
            tensors = list(first) if isinstance(first, (list, tuple)) else []
        if not tensors:
            return
        first = tensors[0]
    if first.grad_fn is not None:
        for hook in hooks:
            first.grad_fn.register_hook(functools.partial(hook, module))


def _run_always_called(module, args, kwargs, result, ran) -> None:
    for hook_id, hook in (*global_forward_hooks.items(), *module._forward_hooks.items()):
        always = (
            hook_id in global_forward_hooks_always_called
            or hook_id in module._forward_hooks_always_called
        )
        if always and hook_id not in ran:
            try:
                result = _run_forward_hook(module, hook_id, hook, args, kwargs, result)
            except Exception as error:
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was "
                    f"silenced as another error was raised in forward: {error!s}",
                    stacklevel=3,
                )


torch._C._set_module_hooks(
    call_with_hooks,
    global_forward_hooks,
    global_forward_pre_hooks,
    global_backward_hooks,
    global_backward_pre_hooks,
)
