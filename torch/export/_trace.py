"""torch.export.export in steps: inputs without data, the graph of the program, checks of what was
promised about sizes, and the parts of an ExportedProgram."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
import torch.utils._pytree as pytree
from torch import fx, nn
from torch._dynamo.exc import UserError, UserErrorType
from torch._export.passes.lift_constants_pass import lift_constants_pass
from torch._guards import GuardSource
from torch.export._capture import Captured, capture, parameter_names
from torch.export._guards import evaluate, is_input_check
from torch.export._inputs import FakeInputs, fake_inputs, fake_mode_for
from torch.export._module_stacks import name_modules
from torch.export._names import name_inputs, name_of_path
from torch.export._regions import wrap_autocast_regions, wrap_grad_regions
from torch.export._signature import call_entries, range_constraints, signature_of
from torch.export._state import State
from torch.export._violations import check_promises, guard_texts
from torch.export.dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, input_paths
from torch.export.dynamic_shapes import _combine_args as combined_arguments
from torch.export.exported_program import ExportedProgram
from torch.fx.passes.runtime_assert import insert_deferred_runtime_asserts

__all__ = ["DEFAULT_EXPORT_DYNAMO_CONFIG", "ExportDynamoConfig"]


@dataclasses.dataclass
class ExportDynamoConfig:
    """Settings of the bytecode tracer that strict exports use."""

    allow_rnn: bool = True
    reorderable_logging_functions: set = dataclasses.field(default_factory=set)
    do_not_emit_runtime_asserts: bool = True
    specialize_int: bool = True
    specialize_float: bool = True
    assume_static_by_default: bool = True
    automatic_dynamic_shapes: bool = False
    capture_dynamic_output_shape_ops: bool = True
    capture_scalar_outputs: bool = True
    prefer_deferred_runtime_asserts_over_guards: bool = False


DEFAULT_EXPORT_DYNAMO_CONFIG = ExportDynamoConfig()


def _checked(
    mod: nn.Module, args: tuple[object, ...], kwargs: Mapping[str, object] | None
) -> dict[str, object]:
    if not isinstance(mod, nn.Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if isinstance(mod, torch.jit.ScriptModule):
        raise ValueError(
            "Exporting a ScriptModule is not supported. Maybe try converting your ScriptModule to "
            "an ExportedProgram using `TS2EPConverter(mod, args, kwargs).convert()` instead."
        )
    if not isinstance(args, tuple):
        raise UserError(
            UserErrorType.INVALID_INPUT,
            f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}",
        )
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise UserError(
            UserErrorType.INVALID_INPUT,
            f"Expecting `kwargs` to be a dict of example keyword inputs, got {type(kwargs)}",
        )
    return dict(kwargs or {})


def _lazy_modules_ready(mod: nn.Module, args: tuple, kwargs: dict[str, object]) -> None:
    """Modules that make their parameters at the first call make them now."""
    from torch.nn.modules.lazy import LazyModuleMixin

    lazy = [m for m in mod.modules() if isinstance(m, LazyModuleMixin)]
    if any(m.has_uninitialized_params() or hasattr(m, "_initialize_hook") for m in lazy):
        with torch.no_grad():
            mod(*args, **kwargs)


def _export(
    mod: nn.Module,
    args: tuple[object, ...],
    kwargs: Mapping[str, object] | None = None,
    dynamic_shapes: dict | tuple | list | ShapesCollection | AdditionalInputs | None = None,
    *,
    strict: bool = False,
    preserve_module_call_signature: Sequence[str] = (),
    pre_dispatch: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
    allow_complex_guards_as_runtime_asserts: bool = False,
    _is_torch_jit_trace: bool = False,
) -> ExportedProgram:
    """export; without pre_dispatch the program is also free of writes and composite operators."""
    named = _checked(mod, args, kwargs)
    _lazy_modules_ready(mod, args, named)
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, named)
    runs = _by_bytecode(mod, args, named, dynamic_shapes) if strict else None
    if preserve_module_call_signature:
        runs = None  # the graph of the bytecode tracer has no calls of modules to look at
    ep = _export_by_running(
        mod,
        args,
        named,
        dynamic_shapes,
        preserve_module_call_signature,
        prefer_deferred_runtime_asserts_over_guards,
        runs,
    )
    if pre_dispatch:
        return ep
    from torch.export._decompose import decomposed
    from torch.export.decomp_utils import composite_table

    return decomposed(ep, composite_table())


class _ByBytecode(NamedTuple):
    """The graph of torch functions that the bytecode tracer made, and when it holds."""

    module: fx.GraphModule
    conditions: list[str]  # on sizes and numbers of the arguments, as L['x'].size()[0] > 4


def _by_bytecode(
    mod: nn.Module,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    dynamic_shapes: dict | tuple | list | None,
) -> _ByBytecode:
    """What the bytecode tracer sees. It finds out what sizes have to be, whatever was promised:
    promises are checked where the graph is run."""
    import torch._dynamo

    shapes = _all_may_vary(dynamic_shapes)
    export = torch._dynamo.export(mod, dynamic_shapes=shapes, assume_static_by_default=True)
    found = export(*args, **kwargs)
    name_modules(found.graph_module, mod)
    conditions = []
    for guard in found.guards:
        if guard.source is GuardSource.SHAPE_ENV:
            conditions.extend(guard.code_list)
        elif type(guard.value) is int and guard.name.startswith("L["):
            conditions.append(f"{guard.name} == {guard.value}")
    return _ByBytecode(found.graph_module, conditions)


def _all_may_vary(dynamic_shapes: object) -> object:
    """A description of sizes in which nothing is promised of those that vary."""
    if isinstance(dynamic_shapes, dict):
        return {key: _all_may_vary(value) for key, value in dynamic_shapes.items()}
    if isinstance(dynamic_shapes, (tuple, list)):
        return type(dynamic_shapes)(map(_all_may_vary, dynamic_shapes))
    fixed = (
        dynamic_shapes is None or isinstance(dynamic_shapes, int) or dynamic_shapes == Dim.STATIC
    )
    return dynamic_shapes if fixed else Dim.AUTO


def _take_over(
    conditions: Sequence[str], mod: nn.Module, in_spec: pytree.TreeSpec, inputs: FakeInputs
) -> None:
    """Notes what a graph takes for granted as conditions on the inputs that it is now run on."""
    args, kwargs = pytree.tree_unflatten(inputs.leaves, in_spec)
    names = {"L": combined_arguments(mod, args, kwargs)}
    for text in conditions:
        try:
            evaluate(text, names)  # a comparison with a symbol is noted where it is made
        except (ValueError, KeyError, IndexError, TypeError):
            continue  # it is about something else than an argument: that is fixed
    for hook in mod._forward_pre_hooks.values():
        if is_input_check(hook):
            hook(mod, args, kwargs)


def _export_by_running(
    mod: nn.Module,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    dynamic_shapes: dict | tuple | list | None,
    preserved: Sequence[str],
    defer: bool,
    runs: _ByBytecode | None,
) -> ExportedProgram:
    """Captures the program by running its Python, or that of the graph the bytecode tracer made."""
    state = State(mod, runs.module if runs else None)
    leaves, in_spec = pytree.tree_flatten((args, kwargs))
    tensors = [v for v in (*leaves, *state.tensors.values()) if isinstance(v, torch.Tensor)]
    mode = fake_mode_for(tensors)
    mode.shape_env._defer_instead_of_guard = defer
    inputs = fake_inputs(mod, args, kwargs, dynamic_shapes, mode)
    if runs:
        _take_over(runs.conditions, mod, in_spec, inputs)
    captured = capture(runs.module if runs else mod, args, kwargs, inputs, state, preserved)
    return program_of(mod, args, kwargs, captured)


def program_of(
    mod: nn.Module, args: tuple[object, ...], kwargs: dict[str, object], captured: Captured
) -> ExportedProgram:
    """The program of a captured graph."""
    from torch._export.verifier import TrainingIRVerifier

    env = captured.inputs.mode.shape_env
    check_promises(env, captured.inputs)
    module = captured.module
    name = f"exported program: {type(mod).__name__}"
    insert_deferred_runtime_asserts(module, env, name, export=True)
    signature = signature_of(captured)
    constants = _constants(module, signature, captured.state)
    wrap_autocast_regions(module)
    wrap_grad_regions(module, torch.is_grad_enabled())
    names = [name_of_path(path) for path in input_paths(mod, args, kwargs)]
    name_inputs(module, signature, names)
    entries = call_entries(mod, captured, captured.calls)
    entries[0].signature.forward_arg_names = parameter_names(mod, args, kwargs)
    ranges = range_constraints(env, module, captured)
    state_dict = _state_dict(mod, captured.state)
    ep = ExportedProgram(
        module,
        module.graph,
        signature,
        state_dict,
        ranges,
        entries,
        (args, kwargs),
        constants,
        verifiers=[TrainingIRVerifier],
    )
    ep._guards_code = guard_texts(env, captured.inputs)
    return ep


def _constants(module: fx.GraphModule, signature: object, state: State) -> dict[str, object]:
    """Lifts what the graph reads; buffers that no state_dict holds are constants too."""
    from torch._export.passes.lift_constants_pass import ConstantAttrMap

    known = ConstantAttrMap()
    for value in state._kept:
        known.add(value, state.constants[id(value)])
    found = lift_constants_pass(module, signature, known)
    for name, buffer in state.buffers.items():
        if name in state.not_persistent:
            found[name] = buffer
    return found


def _state_dict(mod: nn.Module, state: State) -> dict[str, torch.Tensor]:
    found = {}
    for name, tensor in state.tensors.items():
        if name not in state.not_persistent:
            found[name] = tensor
    return found


def _export_for_training(
    mod: nn.Module,
    args: tuple[object, ...],
    kwargs: Mapping[str, object] | None = None,
    dynamic_shapes: dict | tuple | list | ShapesCollection | AdditionalInputs | None = None,
    *,
    strict: bool = False,
    preserve_module_call_signature: Sequence[str] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """The program as it is, with writes."""
    return _export(
        mod,
        args,
        kwargs,
        dynamic_shapes,
        strict=strict,
        preserve_module_call_signature=preserve_module_call_signature,
        pre_dispatch=True,
        prefer_deferred_runtime_asserts_over_guards=prefer_deferred_runtime_asserts_over_guards,
    )


def _export_to_torch_ir(
    f: nn.Module,
    args: tuple[object, ...],
    kwargs: dict[str, object] | None = None,
    dynamic_shapes: dict | tuple | list | None = None,
    **settings: object,
) -> fx.GraphModule:
    """The graph of torch functions that the bytecode tracer sees."""
    import torch._dynamo

    known = ("disable_constraint_solver", "same_signature")
    given = {k: v for k, v in settings.items() if k in known}
    exported = torch._dynamo.export(f, dynamic_shapes=dynamic_shapes, **given)
    return exported(*args, **(kwargs or {})).graph_module
