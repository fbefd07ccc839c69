"""Operators of the first custom-operator interface, which torch._custom_ops offers.

An operator is functional: it writes no argument and returns new tensors. Its kernels, what it saves
and its backward come one by one; until then a call says which of them is missing. Operators that
torch.library or C++ defined can be completed the same way. The gradient itself is that of
torch.library.register_autograd: this module only turns the two halves of the old interface
(`save(inputs, output)`, `backward(ctx, saved, *grads)` with a dictionary) into the two of the new
one."""

from __future__ import annotations

import collections
import inspect
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import library
from torch._library.autograd import run_with_gradient
from torch._library.infer_schema import infer_schema
from torch._library.utils import (
    is_functional_schema,
    is_tensor_like_type,
    is_tensorlist_like_type,
    lookup_op,
)
from torch.utils._pytree import tree_any_only

__all__ = ["CustomOp", "custom_op", "get_op", "infer_schema"]

RESERVED_NS = {"aten", "at", "prim", "prims", "pytorch", "torch"}
SUPPORTED_DEVICE_TYPE_TO_KEY = {"cpu": "CPU", "cuda": "CUDA"}
_AUTOGRAD_KEYS = ("Autograd", "AutogradCPU", "AutogradCUDA")

# "ns::name" -> its CustomOp, for operators that were defined or completed here.
global_registry: dict[str, CustomOp] = {}


class CustomOp:
    """An operator and what was registered for it. custom_op(...) and get_op(...) make them."""

    def __init__(
        self,
        overload: torch._ops.OpOverload | None = None,
        defined_by: library.Library | None = None,
        *unused: object,
        _private_access: bool = False,
    ) -> None:
        if not _private_access:
            raise RuntimeError(
                "The CustomOp constructor is private and may change. Please use custom_op(...) to "
                "create a CustomOp object"
            )
        self._overload = overload
        self._qualname = overload._qualified_op_name
        self._defined_by = defined_by
        self._library = defined_by or library.Library(overload.namespace, "FRAGMENT")
        # What was registered -> (function, where it is).
        self._parts: dict[str, tuple[Callable, str]] = {}
        self._differentiable: Sequence[bool] | None = None
        self._has_autograd_kernel = False
        if defined_by is not None:
            self._library.impl(overload, self._missing_kernel, "CompositeExplicitAutograd")
            self._register_autograd_kernel()
        global_registry[self._qualname] = self

    def __repr__(self) -> str:
        return f'<CustomOp(op="{self._qualname}")>'

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._overload(*args, **kwargs)

    def _destroy(self) -> None:
        """Takes back what was defined and registered here."""
        global_registry.pop(self._qualname, None)
        self._library._destroy()

    # ---- kernels

    def impl(self, device_types: str | Iterable[str]) -> Callable[[Callable], Callable]:
        """A decorator: the function is the kernel for these kinds of device."""
        devices = [device_types] if isinstance(device_types, str) else list(device_types)
        for device in devices:
            if device not in SUPPORTED_DEVICE_TYPE_TO_KEY:
                raise ValueError(
                    f"CustomOp.impl(device_types=[{device}, ...]): we only support device_type in "
                    f"{list(SUPPORTED_DEVICE_TYPE_TO_KEY)}."
                )

        def register(function: Callable) -> Callable:
            for device in devices:
                self._check_no_kernel(device)
                self._note(device, function)
                self._library.impl(self._overload, function, SUPPORTED_DEVICE_TYPE_TO_KEY[device])
            return function

        return register

    def impl_factory(self) -> Callable[[Callable], Callable]:
        """A decorator: the function is the kernel of an operator without tensor arguments."""

        def register(function: Callable) -> Callable:
            self._note("factory", function)
            self._library.impl(self._overload, function, "BackendSelect")
            return function

        return register

    def impl_abstract(self) -> Callable[[Callable], Callable]:
        """A decorator: the function computes shapes and dtypes."""

        def register(function: Callable) -> Callable:
            self._note("abstract", function)
            return library.register_fake(self._overload, function, lib=self._library)

        return register

    def _check_no_kernel(self, device: str) -> None:
        keys = [SUPPORTED_DEVICE_TYPE_TO_KEY[device]]
        if self._defined_by is None:
            keys += ["CompositeImplicitAutograd", "CompositeExplicitAutograd"]
        if device not in self._parts and any(self._has_kernel(key) for key in keys):
            raise RuntimeError(
                f"impl(..., device_types={device}): the operator {self._qualname} already has an "
                "implementation for this device type by torch.library or TORCH_LIBRARY."
            )

    def _has_kernel(self, key: str) -> bool:
        return torch._C._dispatch_has_kernel_for_dispatch_key(self._overload._name, key)

    def _note(self, part: str, function: Callable) -> None:
        if part in self._parts:
            raise RuntimeError(
                f"Attempting to register a {part} impl for operator {self._qualname} that already "
                f"has a {part} impl registered from Python at {self._parts[part][1]}. This is not "
                "supported."
            )
        code = getattr(function, "__code__", None)
        where = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)
        self._parts[part] = (function, where)

    def _missing_kernel(self, *args: object, **kwargs: object) -> None:
        devices: list[str] = []
        tree_any_only(torch.Tensor, lambda t: devices.append(t.device.type), (args, kwargs))
        if not devices:
            raise NotImplementedError(
                f"{self}: There were no Tensor inputs to this operator. A function that makes "
                "tensors from other arguments is registered with CustomOp.impl_factory"
            )
        if "meta" in devices:
            raise NotImplementedError(
                f"{self._qualname}: attempted to run this operator with Meta tensors, but there "
                "was no fake impl or Meta kernel registered. torch.library.register_fake adds one"
            )
        raise NotImplementedError(
            f"{self}: when running with device='{devices[0]}' tensors: there is no {devices[0]} "
            "impl registered for this CustomOp. Please register one via "
            f"CustomOp.impl(device_type='{devices[0]}')"
        )

    # ---- gradients

    def impl_save_for_backward(self) -> Callable[[Callable], Callable]:
        """A decorator: function(inputs, output) returns what backward gets as `saved`."""
        return self._gradient_part("save_for_backward")

    def impl_backward(
        self, output_differentiability: Sequence[bool] | None = None
    ) -> Callable[[Callable], Callable]:
        """A decorator: function(ctx, saved, *grads) returns a dict from arguments to gradients."""
        flags = output_differentiability
        if flags is not None:
            is_list = isinstance(flags, list) and all(isinstance(flag, bool) for flag in flags)
            if not is_list or len(flags) != len(self._overload._schema.returns):
                raise RuntimeError(
                    "impl_backward(output_differentiability): expected output_differentiability "
                    "to be a list of bools with length equal to the number of outputs of this "
                    f"CustomOp got: {flags}"
                )
            self._differentiable = flags
        return self._gradient_part("backward")

    def _gradient_part(self, part: str) -> Callable[[Callable], Callable]:
        def register(function: Callable) -> Callable:
            self._check_differentiable()
            self._note(part, function)
            if not self._has_autograd_kernel:
                self._register_autograd_kernel()
            return function

        return register

    def _check_differentiable(self) -> None:
        schema = self._overload._schema
        writes = any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)
        views = any(r.alias_info is not None for r in schema.returns)
        fault = (
            ("non-functional operator" if writes else None)
            or ("operator that returns views" if views else None)
            or (None if schema.returns else "operator with no returns")
        )
        if fault is not None:
            raise RuntimeError(
                f"Cannot use torch._custom_ops APIs to register backward formula for {fault}. Got "
                f"operator {self._qualname} with schema: {schema}"
            )
        if self._has_autograd_kernel:
            return
        for key in ("CompositeImplicitAutograd", *_AUTOGRAD_KEYS):
            if self._has_kernel(key):
                raise RuntimeError(
                    f"impl_backward/impl_save_for_backward: the operator {self._qualname} already "
                    f"has a kernel for DispatchKey::{key} by torch.library or TORCH_LIBRARY, which "
                    "decides about its gradients"
                )

    def _register_autograd_kernel(self) -> None:
        self._has_autograd_kernel = True
        self._library.impl(self._overload, self._autograd_kernel, "Autograd", with_keyset=True)

    def _autograd_kernel(self, keyset: object, *args: object, **kwargs: object) -> object:
        def below() -> object:
            with torch._C._AutoDispatchBelowAutograd():
                return self._overload(*args, **kwargs)

        if not torch.is_grad_enabled() or not tree_any_only(
            torch.Tensor, lambda t: t.requires_grad, (args, kwargs)
        ):
            return below()
        has_backward = "backward" in self._parts
        has_save = "save_for_backward" in self._parts
        if not has_backward and not has_save:
            raise RuntimeError(f"Autograd has not been implemented for operator {self._qualname}")
        if not (has_backward and has_save):
            known = "backward" if has_backward else "save_for_backward"
            other = "save_for_backward" if has_backward else "backward"
            raise RuntimeError(
                f"We found a '{known}' registration for {self} at {self._parts[known][1]} but were "
                f"unable to find a '{other}' registration. A gradient needs both, by impl_backward "
                "and impl_save_for_backward."
            )
        return run_with_gradient(_Gradient(self), below, args, kwargs)


class _Gradient:
    """The gradient of a CustomOp as run_with_gradient wants it."""

    def __init__(self, op: CustomOp) -> None:
        self._op = op
        self._overload = self._opoverload = op._overload
        self._qualname = op._qualname
        self._names = [argument.name for argument in self._overload._schema.arguments]
        self._values: tuple[object, ...] = ()

    def _fail(self, what: str) -> None:
        raise RuntimeError(
            f"In the backward function defined for {self._op} at "
            f"{self._op._parts['backward'][1]} using the CustomOp API, {what}"
        )

    def _setup_context_fn(
        self,
        ctx: torch.autograd.function.FunctionCtx,
        inputs: tuple[object, ...],
        output: object,
        keyword_only_inputs: dict[str, object] | None = None,
    ) -> None:
        named = dict(zip(self._names, inputs, strict=False))
        defaults = {a.name: a.default_value for a in self._overload._schema.arguments}
        every = {**defaults, **named, **(keyword_only_inputs or {})}
        self._values = tuple(every[name] for name in self._names)
        record = collections.namedtuple("inputs", self._names)
        ctx.saved_for_backward = self._op._parts["save_for_backward"][0](
            record(*self._values), output
        )
        self._mark(ctx, output)

    def _mark(self, ctx: torch.autograd.function.FunctionCtx, output: object) -> None:
        flags = self._op._differentiable
        if flags is None:
            return
        outputs = output if isinstance(output, tuple) else (output,)
        constant = []
        for value, flag in zip(outputs, flags, strict=True):
            tensors = value if isinstance(value, (list, tuple)) else [value]
            if flag and not all(isinstance(t, torch.Tensor) for t in tensors):
                raise RuntimeError(
                    f"With output_differentiability={flags}. an output of {self._op} is marked as "
                    f"differentiable but is not a Tensor: {type(value)}"
                )
            constant += [] if flag else [t for t in tensors if isinstance(t, torch.Tensor)]
        ctx.mark_non_differentiable(*constant)

    def _backward_fn(
        self, ctx: torch.autograd.function.FunctionCtx, *grads: object
    ) -> tuple[object, ...]:
        found = self._op._parts["backward"][0](ctx, ctx.saved_for_backward, *grads)
        if not isinstance(found, dict):
            self._fail(
                f"expected the output of the backward function to be a dict but got {type(found)}"
            )
        arguments = self._overload._schema.arguments
        tensors = {
            a.name
            for a in arguments
            if is_tensor_like_type(a.type) or is_tensorlist_like_type(a.type)
        }
        if set(found) != tensors:
            extra = set(found) - tensors
            note = f"; {extra} are of non-Tensor-like types" if extra & set(self._names) else ""
            self._fail(
                "expected the returned grad_input dict to have keys "
                f"{tensors} but got {set(found)}{note}"
            )
        for argument, value in zip(arguments, self._values, strict=True):
            if argument.name in tensors:
                self._check_gradient(argument.name, value, found[argument.name])
        return tuple(found.get(a.name) for a in arguments if not a.kwarg_only)

    def _check_gradient(self, name: str, value: object, grad: object) -> None:
        if not isinstance(value, (list, tuple)):
            if grad is not None and not isinstance(grad, torch.Tensor):
                self._fail(
                    "expected either None or a Tensor in the returned grad_input dict for "
                    f"{name!r} but got {type(grad)}"
                )
            return
        if not isinstance(grad, (list, tuple)):
            self._fail(f"for input {name!r} expected a list of gradients but got {type(grad)}")
        if len(grad) != len(value):
            self._fail(f"for input {name!r} expected {len(value)} gradients but got {len(grad)}")
        if not all(g is None or isinstance(g, torch.Tensor) for g in grad):
            kinds = [type(g) for g in grad]
            self._fail(f"for input {name!r} expected None or Tensor gradients but got {kinds}")


# ---- names and schemas --------------------------------------------------------------------------
def _split(qualname: str) -> tuple[str, str]:
    if "." in qualname:
        raise ValueError(
            "The torch.custom_ops APIs do not handle overloads, i.e. operator names with '.' in "
            f"them. Please name your operator something like ns::foo. Got: {qualname}"
        )
    namespace, _, name = qualname.partition("::")
    if not name:
        raise ValueError(
            f"Expected there to be a namespace in {qualname}, i.e. The operator name should look "
            "something like ns::foo"
        )
    if namespace in RESERVED_NS:
        raise ValueError(
            f"custom_op(..., ns='{namespace}'): '{namespace}' is a reserved namespace, please "
            "choose something else. "
        )
    return namespace, name


def _parsed(text: str) -> torch._C.FunctionSchema:
    try:
        return torch._C.parse_schema(text)
    except RuntimeError as error:
        raise AssertionError(f"Invalid function schema: {text}") from error


def _define(qualname: str, schema: str) -> CustomOp:
    namespace, name = _split(qualname)
    parsed = _parsed(name + schema)
    if not is_functional_schema(parsed):
        raise ValueError(
            "custom_op only supports functional operators (ops that do not mutate any inputs, do "
            "not return views of the inputs, and has at least one return). Got the following "
            f"non-functional schema: {name}{schema}"
        )
    if any(argument.name == "self" for argument in parsed.arguments):
        raise ValueError(
            "custom_op does not support arguments named 'self'. Please rename your argument. Got: "
            f"{name}{schema}"
        )
    made = library.Library(namespace, "FRAGMENT")
    made.define(name + schema)
    return CustomOp(lookup_op(qualname), made, _private_access=True)


def get_op(qualname: str) -> torch._ops.OpOverload:
    """The operator of this name; ValueError if there is none."""
    try:
        return lookup_op(qualname)
    except AttributeError as error:
        raise ValueError(
            f"Could not find the operator {qualname}. Please make sure you have already registered "
            "the operator and (if registered from C++) loaded it via torch.ops.load_library."
        ) from error


def find(qualname: str) -> CustomOp:
    """The CustomOp of an operator, made at its first use for one that was defined elsewhere."""
    known = global_registry.get(qualname)
    if known is not None:
        return known
    return CustomOp(get_op(qualname), _private_access=True)


def define_from(qualname: str, function: Callable) -> Callable:
    """Defines an operator from a function's name and annotations; returns the function."""
    name = _split(qualname)[1]
    if function.__name__ != name:
        raise ValueError(
            f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' "
            f"but got '{function.__name__}'. Please either change the name of `func` or the "
            "qualname that is passed to `custom_op`"
        )
    _define(qualname, infer_schema(function, mutates_args=()))
    return function


def custom_op(qualname: str, manual_schema: str | None = None) -> Callable[[Callable], CustomOp]:
    """The oldest form: a decorator that makes a CustomOp of a function that is never called."""

    def make(function: Callable) -> CustomOp:
        if not inspect.isfunction(function):
            raise ValueError(
                f"custom_op(...)(func): Expected `func` to be a Python function, got: "
                f"{type(function)}"
            )
        if manual_schema is None:
            define_from(qualname, function)
            return global_registry[qualname]
        _check_signature(function, _split(qualname)[1] + manual_schema)
        return _define(qualname, manual_schema)

    return make


def _check_signature(function: Callable, schema: str) -> None:
    """The parameters of a function are those of the schema, in name, order and kind."""
    parameters = inspect.signature(function).parameters.values()
    found = [
        (p.name, p.kind is p.KEYWORD_ONLY, None if p.default is p.empty else p.default)
        for p in parameters
    ]
    wanted = [(a.name, a.kwarg_only, a.default_value) for a in _parsed(schema).arguments]
    if found != wanted or any(p.annotation is not p.empty for p in parameters):
        raise ValueError(
            "custom_op(..., manual_schema)(func): When passing in a manual schema, we expect "
            f"`func`'s signature to match it and to have no type annotations. Got {schema} and "
            f"{inspect.signature(function)}"
        )


def get_ctx() -> object:
    """See torch.library.get_ctx."""
    return library.get_ctx()
