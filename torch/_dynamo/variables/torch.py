"""Functions of torch: calls in the graph, constants of the trace, and those that change the state
of the process, each by one rule."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import logging
import math
import sys
import types
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
import torch.fx._symbolic_trace
import torch.fx.experimental.symbolic_shapes
from torch._dynamo import polyfills, trace_rules
from torch._dynamo.exc import ForbiddenCallable, raise_error, unimplemented
from torch._dynamo.polyfills import transforms
from torch._dynamo.trace_rules import (
    CONSTANT,
    FORBID,
    GRAPH,
    INLINE,
    MARKED,
    NONSTRICT,
    SKIP,
    handler,
)
from torch._dynamo.variables import numpy_arrays
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.builtin import call_c_function, fold, refuse_arguments
from torch._dynamo.variables.constant import FALSE, NONE, ConstantVariable
from torch._dynamo.variables.lists import BaseListVariable, ListVariable, TupleVariable
from torch._dynamo.variables.tensor import SymNodeVariable, TensorVariable
from torch._dynamo.variables.user_defined import (
    UserDefinedClassVariable,
    UserDefinedObjectVariable,
)
from torch._library.custom_ops import CustomOpDef

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame


_signature = functools.cache(inspect.signature)


def call(
    tx: Frame, rule: object, fn: VariableTracker, value: object, args: Args, kwargs: Kwargs
) -> VariableTracker:
    """A call of `value` by its rule."""
    if rule is trace_rules.SKIP and args:
        logger = getattr(args[0].realize(), "value", None)
        if isinstance(logger, logging.Logger):
            rule = trace_rules.logger_rule(value, logger, tx.out.options.export)
    if rule is GRAPH:
        if isinstance(value, types.FunctionType) and trace_rules.explicit(value) is GRAPH:
            # Allowed by the program, which may call it for its effect.
            args = [_in_graph_form(tx, a.realize()) for a in args]
            kwargs = {k: _in_graph_form(tx, v.realize()) for k, v in kwargs.items()}
            return tx.out.call_effect(tx, value, args, kwargs)
        return call_in_graph(tx, value, args, kwargs)
    if callable(rule):
        try:
            _signature(rule).bind(tx, *args, **kwargs)
        except TypeError as error:
            text = f"{getattr(value, '__name__', value)}(): {error}"
            refuse_arguments(tx, value, args, kwargs, text)
        return rule(tx, *args, **kwargs)
    if rule is CONSTANT:
        return _constant_call(tx, value, args, kwargs)
    if rule is trace_rules.IGNORE:
        return NONE
    if rule is trace_rules.LATER:
        tx.out.side_effects.calls.append((value, list(args), dict(kwargs)))
        return NONE
    if rule is NONSTRICT:
        from torch._dynamo.variables import pytree

        return pytree.call_on_leaves(tx, value, args, kwargs)
    if rule is INLINE:
        return tx.inline(fn, args, kwargs)
    if rule is MARKED:
        values = [_real(tx, a) for a in args]
        return VariableTracker.build(
            tx, value(*values, **{k: _real(tx, v) for k, v in kwargs.items()})
        )
    if rule is FORBID:
        raise ForbiddenCallable(f"Attempt to trace forbidden callable {value}")
    if isinstance(rule, tuple) and rule[0] == "substitute":
        return VariableTracker.build(tx, rule[1]).call_function(tx, args, kwargs)
    if isinstance(rule, tuple) and rule[0] == "value":
        return VariableTracker.build(tx, rule[1])
    if rule is SKIP and torch._dynamo.config.trace_numpy and numpy_arrays.is_numpy(value):
        return numpy_arrays.call(tx, value, args, kwargs)
    found = call_c_function(tx, value, args, kwargs) if rule is SKIP else None
    if found is not None:
        return found
    trace_rules.refuse(value)


def _in_graph_form(tx: Frame, vt: VariableTracker) -> VariableTracker:
    """A frozen dataclass enters the graph by its fields; other values as they are."""
    if not isinstance(vt, UserDefinedObjectVariable) or not dataclasses.is_dataclass(vt.cls):
        return vt
    fields = dataclasses.fields(vt.cls)
    if not vt.cls.__dataclass_params__.frozen or not all(field.init for field in fields):
        return vt
    return tx.out.object_node(tx, vt.cls, {f.name: vt.getattr(tx, f.name) for f in fields})


def _real(tx: Frame, vt: VariableTracker) -> object:
    """The value that the running program would have, computed from the real inputs."""
    vt = vt.realize()
    if isinstance(vt, TensorVariable | SymNodeVariable):
        return tx.out.real_value(vt.node)
    if isinstance(vt, BaseListVariable):
        return vt.cls([_real(tx, item) for item in vt.items])
    if isinstance(vt, UserDefinedObjectVariable) and vt.value is not None and not vt.changed:
        return vt.value
    if not vt.is_python_constant():
        unimplemented("constant result", repr(vt), "the real value of an argument is not known")
    return vt.as_python_constant()


def _constant_call(tx: Frame, fn: Callable, args: Args, kwargs: Kwargs) -> VariableTracker:
    found = fold(tx, fn, args, kwargs)
    if found is not None:
        return found
    everything = (*args, *kwargs.values())
    if any(isinstance(a, SymNodeVariable) for a in everything):
        target = _SYMBOLIC_MATH.get(fn)
        if target is not None:
            return tx.out.call(tx, target, args, kwargs)
        plain = [
            ConstantVariable(a.evaluate()) if isinstance(a, SymNodeVariable) else a for a in args
        ]
        found = fold(tx, fn, plain, kwargs)
        if found is not None:
            return found
    if any(isinstance(a, TensorVariable) for a in everything):
        target = getattr(torch, getattr(fn, "__name__", ""), None)
        if fn.__module__ == "math":
            items = [
                a.call_method(tx, "item", [], {}) if isinstance(a, TensorVariable) else a
                for a in args
            ]
            return _constant_call(tx, fn, items, kwargs)
        if target is not None and fn.__module__ == "builtins":
            return tx.out.call(tx, fn, args, kwargs)
    unimplemented(
        "call on values that are not known",
        f"{fn}({args}, {kwargs})",
        f"`{getattr(fn, '__name__', fn)}` needs values that are known while tracing",
    )


_SYMBOLIC_MATH = {
    math.sqrt: torch.sym_sqrt if hasattr(torch, "sym_sqrt") else math.sqrt,
    math.floor: math.floor,
    math.ceil: math.ceil,
}


def call_in_graph(tx: Frame, fn: Callable, args: Args, kwargs: Kwargs) -> VariableTracker:
    """A call that becomes a node."""
    if isinstance(fn, torch._ops.OpOverloadPacket | torch._ops.OpOverload):
        return tx.out.call(tx, fn, args, kwargs)
    if (
        isinstance(
            fn,
            types.MethodDescriptorType | types.WrapperDescriptorType | types.GetSetDescriptorType,
        )
        and args
    ):
        if isinstance(args[0], TensorVariable) and fn.__name__ != "__get__":
            return args[0].call_method(tx, fn.__name__, args[1:], kwargs)
    if "out" in kwargs and not kwargs["out"].is_same(NONE):
        return _call_with_out(tx, fn, args, kwargs)
    for vt in (*args, *kwargs.values()):
        if (
            isinstance(vt, UserDefinedObjectVariable)
            and vt.value is not None
            and hasattr(vt.cls, "__torch_function__")
        ):
            tx.out.overridable = True
    return tx.out.call(tx, fn, args, kwargs)


def _call_with_out(tx: Frame, fn: Callable, args: Args, kwargs: Kwargs) -> VariableTracker:
    out = kwargs["out"]
    if isinstance(out, TensorVariable):
        before = tuple(out.fake.shape)
        result = tx.out.call(tx, fn, args, kwargs)
        if tuple(out.fake.shape) != before and out.source is not None:
            unimplemented("out= of another shape", f"{fn}", "the tensor given as out= is resized")
        return result
    if isinstance(out, BaseListVariable):
        tx.out.call(tx, fn, args, kwargs)
        return out
    return tx.out.call(tx, fn, args, kwargs)


trace_rules.effect(
    *[value for name, value in vars(torch._C._functorch).items() if name.endswith("_nesting")],
    torch._C._enter_dual_level,
    torch._C._exit_dual_level,
    torch._C._set_fwd_grad_enabled,
    torch._C._set_grad_enabled,
)


# ---- questions about the trace and the process


def _state(value: object) -> Callable:
    return lambda tx, *args, **kwargs: VariableTracker.build(tx, value)


for _fn in (torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling):
    trace_rules.register(_fn, _state(True))


def _is_exporting(tx: Frame) -> VariableTracker:
    return ConstantVariable(tx.out.options.export or torch.compiler._is_exporting_flag)


trace_rules.register(torch.compiler.is_exporting, _is_exporting)
# A custom operator called by the object that torch.library.custom_op made.
trace_rules.register(CustomOpDef.__call__, INLINE)
trace_rules.register_name("torch._inductor.test_operators.realize", INLINE)
for _name in (
    "torch.jit.is_scripting",
    "torch.jit.is_tracing",
    "torch.onnx.is_in_onnx_export",
):
    trace_rules.register_name(_name, _state(False))
trace_rules.register(torch._C._get_tracing_state, _state(None))
for _name in ("mark_dynamic", "mark_static", "maybe_mark_dynamic", "mark_unbacked", "set_stance"):
    trace_rules.register(getattr(torch._dynamo, _name), FORBID)
trace_rules.register(torch.compiler.set_stance, FORBID)
trace_rules.register(torch._dynamo.decorators.set_stance_value, FORBID)
# What an operator saves for its derivative is no concern of a trace; what the hooks do is.
for _name in ("_push_saved_tensors_default_hooks", "_pop_saved_tensors_default_hooks"):
    trace_rules.register(getattr(torch._C._autograd, _name), SKIP, "hooks on saved tensors")
trace_rules.register(torch.fx._symbolic_trace.is_fx_tracing, _state(False))
if hasattr(torch._utils, "is_compiling"):
    trace_rules.register(torch._utils.is_compiling, _state(True))


def _ask(fn: Callable) -> Callable:
    """A question whose value the trace has itself, since it runs under the program's settings."""

    def run(tx: Frame, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
        found = fold(tx, fn, list(args), kwargs)
        if found is None:
            unimplemented("state", f"{fn}({args})", "an argument is not known while tracing")
        return found

    return run


for _name in (
    "is_grad_enabled is_autocast_enabled get_autocast_dtype "
    "is_autocast_cpu_enabled get_autocast_gpu_dtype get_autocast_cpu_dtype "
    "is_autocast_cache_enabled get_default_dtype are_deterministic_algorithms_enabled "
    "get_num_threads is_anomaly_enabled is_warn_always_enabled get_default_device "
    "promote_types can_cast finfo iinfo get_float32_matmul_precision "
    "is_deterministic_algorithms_warn_only_enabled"
).split():
    if hasattr(torch, _name):
        trace_rules.register(getattr(torch, _name), _ask(getattr(torch, _name)))
for _fn in (
    torch.cuda.is_available, torch.cuda.device_count, torch.cuda.current_device,
    torch.cuda.is_initialized, torch.backends.cuda.is_built, torch.cuda.get_device_capability,
    torch.autograd._is_checkpoint_valid,
    torch._C._is_torch_function_enabled if hasattr(torch._C, "_is_torch_function_enabled")
    else torch.is_grad_enabled,
):  # fmt: skip
    trace_rules.register(_fn, _ask(_fn))


def _asked_by_name(name: str) -> Callable:
    def run(tx: Frame, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
        module, _, function = name.rpartition(".")
        return _ask(getattr(sys.modules[module], function))(tx, *args, **kwargs)

    return run


for _name in ("torch.distributed.is_available", "torch.distributed.is_initialized"):
    trace_rules.register_name(_name, _asked_by_name(_name))


def _symbolic_question(fn: Callable) -> Callable:
    """A question about a relation between sizes, whose value the trace finds at once."""

    def run(tx: Frame, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
        given = [a.sym if isinstance(a, SymNodeVariable) else a.as_python_constant() for a in args]
        named = {
            k: v.sym if isinstance(v, SymNodeVariable) else v.as_python_constant()
            for k, v in kwargs.items()
        }
        return VariableTracker.build(tx, fn(*given, **named))

    return run


for _name in (
    "guard_size_oblivious guard_or_true guard_or_false guard_bool guard_int guard_scalar "
    "statically_known_true definitely_true definitely_false has_static_value is_concrete_bool "
    "is_concrete_int has_hint"
).split():
    if hasattr(torch.fx.experimental.symbolic_shapes, _name):
        _fn = getattr(torch.fx.experimental.symbolic_shapes, _name)
        trace_rules.register(_fn, _symbolic_question(_fn))


def _varies(tx: Frame, number: VariableTracker) -> VariableTracker:
    return ConstantVariable(isinstance(number, SymNodeVariable))


trace_rules.register_name("torch.optim._stepwise.varies", _varies)


@handler(typing.cast)
def _cast(tx: Frame, typ: VariableTracker, val: VariableTracker) -> VariableTracker:
    return val


def _unwrap_optional(tx: Frame, x: VariableTracker) -> VariableTracker:
    if x.is_same(NONE):
        raise_error(tx, AssertionError, "Unwrapping null optional")
    return x


trace_rules.register_name("torch.jit._unwrap_optional", _unwrap_optional)


def _annotate(tx: Frame, the_type: VariableTracker, value: VariableTracker) -> VariableTracker:
    return value


trace_rules.register_name("torch.jit.annotate", _annotate)


@handler(torch.is_tensor)
def _is_tensor(tx: Frame, obj: VariableTracker) -> VariableTracker:
    return ConstantVariable(issubclass(obj.python_type(), torch.Tensor))


@handler(torch.overrides.is_tensor_like)
def _is_tensor_like(tx: Frame, obj: VariableTracker) -> VariableTracker:
    kind = obj.python_type()
    return ConstantVariable(issubclass(kind, torch.Tensor) or hasattr(kind, "__torch_function__"))


@handler(torch.is_storage)
def _is_storage(tx: Frame, obj: VariableTracker) -> VariableTracker:
    return FALSE


@handler(torch.numel)
def _numel(tx: Frame, input: VariableTracker) -> VariableTracker:
    return input.call_method(tx, "numel", [], {})


for _name in ("is_floating_point", "is_complex"):
    trace_rules.register(
        getattr(torch, _name), lambda tx, input, n=_name: input.call_method(tx, n, [], {})
    )


@handler(
    torch.overrides.has_torch_function,
    torch.overrides.has_torch_function_unary,
    torch.overrides.has_torch_function_variadic,
)
def _has_torch_function(tx: Frame, *args: VariableTracker) -> VariableTracker:
    return FALSE


@handler(torch._C._set_grad_enabled)
def _set_grad_enabled(tx: Frame, mode: VariableTracker) -> VariableTracker:
    from torch._dynamo.variables.ctx_manager import set_grad_enabled

    set_grad_enabled(tx, tx.truth(mode), True)
    tx.out.lasting_modes.add(mode)
    return NONE


@handler(torch.set_default_dtype)
def _set_default_dtype(tx: Frame, d: VariableTracker) -> VariableTracker:
    unimplemented("torch.set_default_dtype", repr(d), "it changes a setting of the process")


@handler(torch._assert)
def _assert(tx: Frame, condition: VariableTracker, message: VariableTracker) -> VariableTracker:
    if isinstance(condition, TensorVariable):
        tx.out.call_effect(tx, torch._assert, [condition, message], {})
        return NONE
    if not tx.truth(condition):
        raise_error(tx, AssertionError, tx.constant_or_text(message))
    return NONE


@handler(torch._check)
def _check(
    tx: Frame, cond: VariableTracker, message: VariableTracker | None = None
) -> VariableTracker:
    if isinstance(cond, SymNodeVariable):
        tx.out.call_effect(tx, torch._check, [cond], {})
        return NONE
    if not tx.truth(cond):
        text = (
            "Expected cond to be True"
            if message is None
            else tx.constant_or_text(message.call_function(tx, [], {}))
        )
        raise_error(tx, RuntimeError, text)
    return NONE


@handler(torch._dynamo.graph_break)
def _graph_break(tx: Frame, msg: VariableTracker | None = None) -> VariableTracker:
    text = "" if msg is None else tx.constant_or_text(msg)
    unimplemented(
        "Call to `torch._dynamo.graph_break()`",
        f"Called `torch._dynamo.graph_break()` with args `{[text] if text else []}`, kwargs `{{}}`",
        "User-inserted graph break. Message: " + str(text or None),
        ("Remove the `torch._dynamo.graph_break()` call.",),
    )


class NewParameterVariable(VariableTracker):
    """An empty parameter that the code makes before the graph, which fills it: a graph computes
    no leaves."""

    __slots__ = ("like", "wanted")

    def __init__(self, like: torch.Tensor, wanted: bool) -> None:
        super().__init__(None)
        self.like = like
        self.wanted = wanted

    def python_type(self) -> type:
        return torch.nn.Parameter

    def reconstruct(self, cg: Codegen) -> str:
        like = self.like
        made = torch.empty_strided
        return (
            f"{cg.const(torch.nn.Parameter)}({cg.const(made)}({tuple(like.shape)}, "
            f"{like.stride()}, dtype={cg.const(like.dtype)}, device={cg.const(like.device)}), "
            f"{self.wanted})"
        )


@handler(torch.nn.Parameter)
def _parameter(
    tx: Frame, data: VariableTracker | None = None, requires_grad: VariableTracker | None = None
) -> VariableTracker:
    from torch._dynamo.variables.ctx_manager import set_grad_enabled

    wanted = requires_grad is None or tx.truth(requires_grad)
    if data is None or not isinstance(data, TensorVariable) or data.cls is not torch.Tensor:
        unimplemented("new parameter", repr(data), "a parameter that is not made of a tensor")
    sizes = (*data.fake.shape, *data.fake.stride())
    if any(isinstance(size, torch.SymInt) for size in sizes) or tx.out.scopes:
        unimplemented("new parameter", repr(data), "the shape of the parameter is symbolic")
    holder = NewParameterVariable(data.fake, wanted)
    with tx.out.fake_mode:
        fake = torch.nn.Parameter(torch.empty_like(data.fake), wanted)
    example = torch.nn.Parameter(
        torch.empty_strided(tuple(fake.shape), fake.stride(), dtype=fake.dtype, device=fake.device),
        wanted,
    )
    made = TensorVariable(tx.out.made_input(holder, example, fake), fake)
    made.cls = torch.nn.Parameter
    before = torch.is_grad_enabled()
    set_grad_enabled(tx, False)
    filled = tx.out.graph.create_node("call_method", "copy_", (made.node, data.node), {})
    filled.meta["example_value"] = fake
    set_grad_enabled(tx, before)
    return made


@handler(torch.manual_seed)
def _manual_seed(tx: Frame, seed: VariableTracker) -> VariableTracker:
    unimplemented("torch.manual_seed", repr(seed), "it changes the state of the generator")


@handler(torch.from_numpy)
def _from_numpy(tx: Frame, array: VariableTracker) -> VariableTracker:
    if not isinstance(array, numpy_arrays.NumpyNdarrayVariable) or array.scalar:
        raise_error(tx, TypeError, "expected np.ndarray (got " + array.python_type().__name__ + ")")
    return array.tensor


@handler(torch.as_tensor)
def _as_tensor(tx: Frame, data: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    if isinstance(data, numpy_arrays.NumpyNdarrayVariable):
        data = data.tensor
    if isinstance(data, TensorVariable):
        named = {k: v for k, v in kwargs.items() if k in ("dtype", "device")}
        return tx.out.call(tx, torch.as_tensor, [data], named)
    return _tensor(tx, data, **kwargs)


@handler(torch.tensor)
def _tensor(tx: Frame, data: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    data = numpy_arrays.joined(tx, data)
    if isinstance(data, numpy_arrays.NumpyNdarrayVariable):
        data = data.tensor
    if isinstance(data, TensorVariable):
        wanted = kwargs.pop("requires_grad", None)
        kwargs.pop("pin_memory", None)
        copy = data.call_method(tx, "detach", [], {}).call_method(tx, "clone", [], {})
        if kwargs:
            copy = copy.call_method(tx, "to", [], kwargs)
        return copy if wanted is None else copy.call_method(tx, "requires_grad_", [wanted], {})
    if _holds_values(data):
        return tx.out.call(tx, _tensor_of_numbers, [data], kwargs)
    return tx.out.call(tx, torch.tensor, [data], kwargs)


@handler(torch._shape_as_tensor)
def _shape_as_tensor(tx: Frame, self: VariableTracker) -> VariableTracker:
    return _tensor(tx, ListVariable(list(self.getattr(tx, "shape").items)))


def _holds_values(data: VariableTracker) -> bool:
    """Whether a number, or one in nested lists, is a symbol or a tensor's."""
    data = data.realize()
    if isinstance(data, BaseListVariable):
        return any(map(_holds_values, data.items))
    return isinstance(data, TensorVariable | SymNodeVariable)


def _tensor_of_numbers(data: object, **kwargs: object) -> torch.Tensor:
    """torch.tensor of a number or of nested lists, some of them symbols or tensors: a copy of their
    values, of which none is looked at."""
    requires_grad = bool(kwargs.pop("requires_grad", False))
    options = {k: v for k, v in kwargs.items() if k in ("dtype", "device") and v is not None}
    made = _stacked(data, options)
    return made.detach().clone().requires_grad_() if requires_grad else made


def _stacked(data: object, options: dict[str, object]) -> torch.Tensor:
    if isinstance(data, list | tuple):
        parts = [_stacked(item, options) for item in data]
        dtype = functools.reduce(torch.promote_types, [part.dtype for part in parts])
        return torch.stack([part.to(dtype) for part in parts])
    if isinstance(data, torch.SymInt):
        return torch.scalar_tensor(data, **{"dtype": torch.int64, **options})
    if isinstance(data, torch.SymFloat):
        return torch.scalar_tensor(data, **options)
    # A tensor stands for its one number.
    return torch.as_tensor(data, **options).detach().reshape(())


def _is_argument(vt: VariableTracker) -> bool:
    """Whether a node can take a value: tensors, numbers and plain sequences of them."""
    vt = vt.realize()
    if isinstance(vt, ListVariable | TupleVariable):
        return all(map(_is_argument, vt.items))
    return isinstance(vt, TensorVariable | SymNodeVariable) or vt.is_python_constant()


def apply_autograd_function(
    tx: Frame, cls: UserDefinedClassVariable, args: Args, kwargs: Kwargs
) -> VariableTracker:
    """Function.apply(...): a call in the graph, since the class defines its own derivative."""
    value = cls.value
    if not all(map(_is_argument, args)):
        unimplemented("autograd.Function", f"{value}", "an argument that is not a tensor")
    holder = ClassNodeVariable(tx.out.attribute_node(value.__name__, value), value)
    return tx.out.node(tx, "call_method", "apply", [holder, *args], kwargs, True)


class ClassNodeVariable(UserDefinedClassVariable):
    """A class that the graph reads from its own module."""

    __slots__ = ("node",)

    def __init__(self, node: torch.fx.Node, value: type) -> None:
        super().__init__(value)
        self.node = node

    def as_proxy(self) -> object:
        return self.node


for _fn, _other in (*polyfills.SUBSTITUTES.items(), *transforms.SUBSTITUTES.items()):
    trace_rules.register(_fn, ("substitute", _other))
del _other


def register_allowed(fn: Callable) -> None:
    """torch.compiler.allow_in_graph"""
    trace_rules.register(fn, GRAPH)


del _fn, _name
