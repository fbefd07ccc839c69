"""torch.library.custom_op: an operator from a Python function, with its gradient, its fake form and
kernels per device."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterator

import torch
from torch import _C
from torch._library.fake_impl import with_ctx
from torch._library.infer_schema import infer_schema

_DEFINITIONS = weakref.WeakValueDictionary()


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Defines an operator "namespace::name" implemented by a function of tensors and numbers.

    mutates_args: the names of the arguments that the function writes to. device_types: the
    devices the function serves; all by default. schema: the operator's schema; read from the
    annotations by default."""

    def define(function):
        text = schema or infer_schema(function, mutates_args=mutates_args)
        namespace, _, op_name = name.partition("::")
        if not op_name:
            raise ValueError(
                f"Expected `name` to be of the form `namespace::name`, got {name!r} (a custom "
                "operator needs a "
                "namespace so that operators of different libraries do not meet)"
            )
        definition = CustomOpDef(namespace, op_name, text, function, tags)
        if schema is not None:
            _check_mutates_args(schema, definition, mutates_args)
        definition.register_kernel(device_types)(function)
        return definition

    return define if fn is None else define(fn)


def _check_mutates_args(schema, definition, mutates_args) -> None:
    written = {a.name for a in definition._opoverload._schema.arguments if a.is_write}
    expected = set() if mutates_args == "unknown" else set(mutates_args)
    if mutates_args != "unknown" and written != expected:
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and "
            f"`schema={schema}. The schema "
            f"suggests that the op mutates {written} which is different from what was provided "
            "to us in "
            "`mutates_args`. Please make these consistent."
        )


class CustomOpDef:
    """A custom operator. Call it as the function; register what else it needs with the methods."""

    def __init__(self, namespace, name, schema, fn, tags=None) -> None:
        self._namespace, self._name, self._schema = namespace, name, schema
        self._init_fn = fn
        self._backend_fns = {}
        self._abstract_fn = None
        self._setup_context_fn = None
        self._backward_fn = None
        self._vmap_fn = None
        self._autocast_dtypes = {}
        self._disabled_kernel = set()
        if name.partition(".")[2] in _C._get_overload_names(self._qualname.partition(".")[0]):
            _DEFINITIONS.get(self._qualname, self)._lib_destroy()
        self._lib = torch.library.Library(namespace, "FRAGMENT")
        self._lib.define(name + schema, tags=_as_tuple(tags))
        space = getattr(torch.ops, namespace)
        plain, _, overload = name.partition(".")
        space.__dict__.pop(plain, None)  # made anew with the overloads that there are now
        self._opoverload = getattr(getattr(space, plain), overload or "default")
        self._lib.impl(name, self._autograd_kernel, "Autograd", with_keyset=True)
        self._lib.impl(name, self._fake_kernel, "Meta")
        _DEFINITIONS[self._qualname] = self

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    def _lib_destroy(self) -> None:
        if getattr(self, "_lib", None) is not None:
            self._lib._destroy()

    # ---- kernels

    def register_kernel(self, device_types, fn=None, /):
        """Registers an implementation for devices; None: for all that have none of their own."""

        def register(function):
            for device in [None] if device_types is None else _as_tuple(device_types):
                key = (
                    "CompositeExplicitAutograd"
                    if device is None
                    else _C._dispatch_key_for_device(device)
                )
                if device not in self._backend_fns:
                    self._lib.impl(self._name, self._backend_kernel(device), key)
                self._backend_fns[device] = function
            return function

        return register if fn is None else register(fn)

    def _backend_kernel(self, device):
        def kernel(*args, **kwargs):
            function = self._backend_fns[device]
            if device in self._disabled_kernel:
                function = self._init_fn
            result = function(*args, **kwargs)
            self._check_aliases(args, kwargs, result)
            return result

        return kernel

    def _check_aliases(self, args, kwargs, result) -> None:
        """Results must be new: autograd and the compiler rely on it."""
        from torch.utils._pytree import tree_iter

        def storages(values):
            return [
                v.untyped_storage()._cdata
                for v in values
                if isinstance(v, torch.Tensor) and v.layout is torch.strided and not v.is_meta
            ]

        seen = set(storages(tree_iter((args, kwargs))))
        for cdata in storages(tree_iter(result)):
            if cdata in seen:
                raise RuntimeError(
                    f"{self._name} (with implementation in {inspect.getmodule(self._init_fn)}): "
                    "The output of this "
                    "custom operator (1) must not also be an input to this custom operator and "
                    "(2) may not alias any "
                    "inputs to this custom operator or other returns. The most common way to "
                    "trigger this error is "
                    "if we have y = custom_op(x) and y and x are the same Tensor. Please "
                    "instead return a clone of "
                    "the offending output tensor(s) (e.g. return x.clone()) or refactor the "
                    "custom operator to not "
                    "return y."
                )
            seen.add(cdata)

    def set_kernel_enabled(self, device_type, enabled=True):
        """Switches a device's own implementation off or on; the general one serves meanwhile.

        Returns a context manager that undoes it."""
        import contextlib

        if device_type not in self._backend_fns:
            raise KeyError(f"no kernel of {self._qualname} was registered for {device_type}")
        was_disabled = device_type in self._disabled_kernel
        (self._disabled_kernel.discard if enabled else self._disabled_kernel.add)(device_type)

        @contextlib.contextmanager
        def restore() -> Iterator[None]:
            try:
                yield
            finally:
                (self._disabled_kernel.add if was_disabled else self._disabled_kernel.discard)(
                    device_type
                )

        return restore()

    # ---- fake form

    def register_fake(self, fn, /):
        """Registers the form that computes shapes and dtypes only."""
        self._abstract_fn = fn
        return fn

    def _fake_kernel(self, *args, **kwargs):
        if self._abstract_fn is None:
            if not self._opoverload._schema.returns:
                return None
            raise RuntimeError(
                f"There was no fake impl registered for {self}. This is necessary for "
                "torch.compile/export/fx "
                f"tracing to work. Please use `{self._init_fn.__name__}.register_fake` to add "
                "an fake impl."
            )
        return with_ctx(self._qualname, self._abstract_fn)(*args, **kwargs)

    # ---- gradients

    def register_autograd(self, backward, /, *, setup_context=None) -> None:
        """Registers the backward function and what it needs saved, as torch.autograd.Function."""
        if self._opoverload._schema.is_mutable:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self}"
            )
        self._backward_fn = backward
        self._setup_context_fn = setup_context

    def _autograd_kernel(self, keyset, *args, **kwargs):
        op = self._opoverload

        def below():
            with _C._AutoDispatchBelowAutograd():
                return op(*args, **kwargs)

        from torch.utils._pytree import tree_any_only

        needs = torch.is_grad_enabled() and tree_any_only(
            torch.Tensor, lambda t: t.requires_grad, (args, kwargs)
        )
        if not needs or op._schema.is_mutable:
            return self._bump_versions(args, kwargs, below())
        from torch._library.autograd import run_with_gradient

        return run_with_gradient(self, below, args, kwargs)

    def _bump_versions(self, args, kwargs, result):
        for index, argument in enumerate(self._opoverload._schema.arguments):
            if not argument.is_write:
                continue
            value = args[index] if index < len(args) else kwargs.get(argument.name)
            for tensor in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(tensor, torch.Tensor) and not tensor.is_inference():
                    _C._increment_version(tensor)
        return result

    # ---- transforms

    def register_vmap(self, func=None):
        """Registers the batched form: `func(info, in_dims, *args)` gives (output, out_dims)."""
        from torch._functorch.autograd_function import batched_kernel

        def register(function):
            if self._vmap_fn is None:
                kernel = batched_kernel(self._name, lambda: self._vmap_fn)
                self._lib.impl(self._name, kernel, "FuncTorchBatched")
            self._vmap_fn = function
            return function

        return register if func is None else register(func)

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        """Registers a rule for a tensor subclass or a mode."""
        register = self._opoverload.py_impl(torch_dispatch_class)
        return register if fn is None else register(fn)

    def register_autocast(self, device_type, cast_inputs) -> None:
        """Floating point inputs are cast to `cast_inputs` where autocast is on for the device."""
        from torch._library.autocast import casting_kernel, key_of

        key = key_of(device_type)
        if device_type not in self._autocast_dtypes:
            kernel = casting_kernel(
                self._opoverload, device_type, lambda: self._autocast_dtypes[device_type]
            )
            self._lib.impl(self._opoverload, kernel, key, with_keyset=True)
        self._autocast_dtypes[device_type] = cast_inputs


def _as_tuple(value):
    if value is None:
        return ()
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def find_definition(op):
    """The CustomOpDef of an operator given by itself, its name or its overload; None if it is no
    custom one."""
    if isinstance(op, CustomOpDef):
        return op
    name = op._name if isinstance(op, torch._ops.OpOverload) else str(op)
    return _DEFINITIONS.get(name)
