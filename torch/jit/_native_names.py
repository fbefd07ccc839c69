"""What programs find in torch._C about graphs of scripted code: the classes of the graph, reading
one from text, and passes by their names. torch._C looks here at the first use of a name."""

from __future__ import annotations

import torch
from torch.jit import _types as T
from torch.jit._ir import Block, Graph, Node, Use, Value  # noqa: F401
from torch.jit._parse_ir import parse_ir  # noqa: F401


def __getattr__(name: str):
    if name == "ScriptFunction":
        return torch.jit.ScriptFunction
    if name == "ScriptMethod":
        return torch.jit.ScriptMethod
    if name == "ScriptModule":
        from torch.jit._c_module import CModule

        return CModule
    if name == "CompilationUnit":
        return torch.jit.CompilationUnit
    if name == "_Await":
        return torch.jit._Await
    raise AttributeError(f"module 'torch._C' has no attribute {name!r}")


# ---- passes


def _jit_pass_dce(graph: Graph) -> None:
    """Removes what nobody reads."""
    from torch.jit._rewrites import eliminate_dead_code

    eliminate_dead_code(graph)


def _jit_pass_cse(graph: Graph) -> bool:
    """Computes equal expressions once."""
    from torch.jit._rewrites import eliminate_common_expressions

    eliminate_common_expressions(graph)
    return True


def _jit_pass_inline(graph: Graph) -> None:
    """Replaces calls by the graphs of what they call."""
    from torch.jit._rewrites import inline

    inline(graph)


def _jit_pass_constant_pooling(graph: Graph) -> None:
    """One node for equal constants."""
    from torch.jit._rewrites import pool_constants

    pool_constants(graph)


def _jit_pass_lint(graph: Graph) -> None:
    """RuntimeError unless the graph is well formed."""
    graph.lint()


def _jit_pass_canonicalize(graph: Graph, keep_unique_names: bool = True) -> Graph:
    """A copy whose values are named by their order."""
    out = graph.copy()
    for node in out.all_nodes():
        for value in node.outputs_list:
            value.setDebugName("")
        for block in node.blocks_list:
            for value in block.params:
                value.setDebugName("")
    if not keep_unique_names:
        for value in out.block.params:
            value.setDebugName("")
    return out


def _jit_pass_constant_propagation(graph: Graph) -> bool:
    """Computes what depends on constants alone."""
    from torch.jit._constants import propagate

    return propagate(graph)


def _jit_pass_constant_propagation_immutable_types(graph: Graph) -> bool:
    """The same, of values that cannot change."""
    from torch.jit._constants import propagate

    return propagate(graph, immutable_only=True)


def _jit_pass_peephole(graph: Graph, disable_shape_peepholes: bool = False) -> bool:
    """Local simplifications."""
    from torch.jit._peephole import simplify

    return simplify(graph, not disable_shape_peepholes)


def _jit_pass_peephole_list_idioms(graph: Graph, refine_list_len: bool = False) -> bool:
    """Local simplifications of lists."""
    from torch.jit._peephole import simplify

    return simplify(graph, False)


def _jit_pass_remove_mutation(graph: Graph) -> bool:
    """Writes to fresh tensors and lists become new values."""
    from torch.jit._mutation import remove_list_mutation, remove_tensor_mutation

    changed = remove_list_mutation(graph)
    return remove_tensor_mutation(graph) or changed


def _jit_pass_remove_list_mutation(graph: Graph) -> bool:
    """Writes to fresh lists become new lists."""
    from torch.jit._mutation import remove_list_mutation

    return remove_list_mutation(graph)


def _jit_pass_lower_all_tuples(graph: Graph) -> None:
    """Takes tuples apart where they are made and read inside of the graph."""
    from torch.jit._peephole import lower_tuples

    lower_tuples(graph)


_jit_pass_lower_simple_tuples = _jit_pass_lower_all_tuples


def _jit_pass_erase_shape_information(graph: Graph) -> None:
    """Types of tensors lose their sizes."""
    values = [*graph.block.params, *(v for n in graph.all_nodes() for v in n.outputs_list)]
    for value in values:
        if isinstance(value.type(), T.SizedTensor):
            value.setType(T.Tensor)


_jit_erase_non_input_shape_information = _jit_pass_erase_shape_information


def _jit_pass_remove_dropout(module) -> None:
    """Takes dropout out of a scripted module that is evaluated."""
    from torch.jit._rewrites import eliminate_dead_code

    method = getattr(module, "_module", module)._method("forward")
    graph = method.graph
    for node in list(graph.all_nodes()):
        if node.kind_name in ("aten::dropout", "aten::dropout_", "aten::feature_dropout"):
            node.output().replaceAllUsesWith(node.inputs_list[0])
            node.destroy()
    eliminate_dead_code(graph)


def _create_function_from_graph(name: str, graph: Graph):
    """A function that runs a graph."""
    from torch.jit._function import Parameter, ScriptFunction
    from torch.jit._trace import TraceSource

    graph = graph.copy()
    parameters = [Parameter(v.debugName(), v.type()) for v in graph.inputs()]
    made = ScriptFunction(name, f"__torch__.{name}", TraceSource(graph, parameters))
    made.ensure_compiled()
    return made


def _jit_check_alias_annotation(graph: Graph, args: tuple, unqualified_op_name: str) -> None:
    """RuntimeError where the operator shares or writes memory in another way than its schema says,
    for these inputs of the graph."""
    from torch.jit._alias_check import check_annotation

    check_annotation(graph, args, unqualified_op_name)


def _jit_set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """torch.jit.set_fusion_strategy."""
    return torch.jit.set_fusion_strategy(strategy)


def _jit_interpret_graph(graph: Graph, inputs) -> object:
    """The result of a graph."""
    return _create_function_from_graph("graph", graph)(*inputs)


def _freeze_module(module, preservedAttrs=(), freezeInterfaces=True, preserveParameters=False):
    """A frozen copy of what `module._c` stands for."""
    from torch.jit._freeze import freeze

    return freeze(getattr(module, "_module", module), list(preservedAttrs), check=False)._c


def _jit_flatten(value: object):
    """The tensors of a nested value."""
    from torch.utils import _pytree as pytree

    return tuple(v for v in pytree.tree_leaves(value) if isinstance(v, torch.Tensor)), ""


def _jit_get_tracer_state_warn() -> bool:
    """Whether tracing warns."""
    from torch.jit import _trace_state

    return _trace_state.warns


def _jit_set_tracer_state_warn(value: bool) -> None:
    """Whether tracing warns from now on."""
    from torch.jit import _trace_state

    _trace_state.warns = bool(value)


def _set_graph_executor_optimize(value: bool) -> None:
    """Whether executors optimise; the interpreter runs graphs as they are."""
    global _optimizes
    _optimizes = bool(value)


def _get_graph_executor_optimize(new_setting: bool | None = None) -> bool:
    """The setting; a new one is set after it is read."""
    before = _optimizes
    if new_setting is not None:
        _set_graph_executor_optimize(new_setting)
    return before


_optimizes = True


def _jit_pass_create_autodiff_subgraphs(graph: Graph, threshold: int = 2) -> None:
    """Parts of the graph that are differentiated as a whole."""
    from torch.jit._autodiff import group

    group(graph, None, threshold)


def _jit_pass_loop_unrolling(graph: Graph) -> bool:
    """Loops of a known, small length as straight code."""
    from torch.jit._unroll import unroll_loops

    return unroll_loops(graph)


_jit_pass_constant_loop_unrolling = _jit_pass_loop_unrolling


def _jit_pass_inline_fork_wait(graph: Graph) -> None:
    """Forked calls that the graph waits for as plain calls, inlined."""
    from torch.jit._rewrites import inline
    from torch.jit._unroll import inline_forks

    inline_forks(graph)
    inline(graph)


def _jit_pass_functional_to_inplace_activation(graph: Graph) -> bool:
    """Activations of values that nobody else sees write into them."""
    from torch.jit._unroll import activations_in_place

    return activations_in_place(graph)


def _jit_pass_inplace_to_functional_activation(graph: Graph) -> bool:
    """Activations that write into their input become new values."""
    from torch.jit._unroll import activations_out_of_place

    return activations_out_of_place(graph)


def _jit_pass_propagate_device(graph: Graph) -> bool:
    """Types with devices, as far as they follow from the inputs."""
    from torch.jit._device_pass import propagate

    return propagate(graph)


# ---- shapes and dtypes


def _jit_pass_propagate_shapes_on_graph(graph: Graph) -> None:
    """Types with sizes and dtypes, as far as they follow from the inputs."""
    from torch.jit._shape_pass import propagate

    propagate(graph)


def _jit_pass_propagate_dtype(graph: Graph) -> bool:
    """Types with dtypes, as far as they follow from the inputs."""
    from torch.jit._shape_pass import propagate

    return propagate(graph)


def _jit_pass_complete_shape_analysis(graph: Graph, inputs, with_grad: bool = False) -> None:
    """The same for these inputs."""
    from torch.jit._shape_pass import propagate

    given = iter(inputs)
    for value in graph.inputs():
        if isinstance(value.type(), T.TensorType):
            example = next(given, None)
            if isinstance(example, torch.Tensor):
                value.setType(T.TensorType.create_from_tensor(example))
    propagate(graph)


def _propagate_shapes(graph: Graph, inputs, with_grad: bool = False) -> Graph:
    """A copy of the graph with the types that follow from these inputs."""
    out = graph.copy()
    _jit_pass_complete_shape_analysis(out, inputs, with_grad)
    return out


# ---- settings of executors, which programs set and read back


class _Setting:
    """A value that one name reads and another sets."""

    def __init__(self, value: object) -> None:
        self.value = value

    def get(self) -> object:
        return self.value

    def set(self, value: object) -> object:
        before, self.value = self.value, value
        return before


def _pair(value: object) -> tuple[object, object]:
    setting = _Setting(value)
    return setting.get, setting.set


_jit_symbolic_shapes_test_mode_enabled, _jit_set_symbolic_shapes_test_mode = _pair(False)
_jit_get_inline_everything_mode, _jit_set_inline_everything_mode = _pair(False)
_debug_get_fusion_group_inlining, _debug_set_fusion_group_inlining = _pair(True)
_debug_get_autodiff_subgraph_inlining, _debug_set_autodiff_subgraph_inlining = _pair(True)
_jit_get_logging_option, _jit_set_logging_option = _pair("")
_jit_get_te_must_use_llvm_cpu, _jit_set_te_must_use_llvm_cpu = _pair(False)
_jit_texpr_reductions_enabled, _jit_set_texpr_reductions_enabled = _pair(False)
_jit_get_num_profiled_runs, _jit_set_num_profiled_runs = _pair(1)
_jit_autocast_mode, _jit_set_autocast_mode = _pair(True)
_get_mobile_interface_call_export, _set_mobile_interface_call_export = _pair(False)


def _enable_mobile_interface_call_export() -> None:
    """Interface calls may be exported."""
    _set_mobile_interface_call_export(True)


def _jit_debug_module_iterators(module) -> dict[str, object]:
    """What a module holds, by kind."""
    inner = getattr(module, "_module", module)
    kind = inner._script_type
    return {
        "children": list(inner.children()),
        "children_r": list(inner.modules())[1:],
        "named_children": list(inner.named_children()),
        "named_children_r": list(inner.named_modules())[1:],
        "parameters": list(inner.parameters(recurse=False)),
        "parameters_r": list(inner.parameters()),
        "named_parameters": list(inner.named_parameters(recurse=False)),
        "named_parameters_r": list(inner.named_parameters()),
        "named_attributes": [(name, getattr(inner, name)) for name in kind.slots],
        "named_attributes_r": [
            (f"{path}.{name}" if path else name, getattr(part, name))
            for path, part in inner.named_modules()
            for name in part._script_type.slots
        ],
        "buffers": list(inner.buffers(recurse=False)),
        "buffers_r": list(inner.buffers()),
    }


def _jit_clear_class_registry() -> None:
    """Forgets which Python classes were compiled, and the names they had."""
    from torch.jit import _annotations, _classes, _module_types

    _annotations._classes.clear()
    _classes._names.clear()
    _module_types._shared.clear()


def _last_executed_optimized_graph() -> Graph:
    """The graph of the scripted function that was called last, with calls inlined."""
    last = torch._C._script_last_called()
    if last is None:
        raise RuntimeError("no scripted function was called yet")
    return last.inlined_graph


def _jit_assert_is_instance(value: object, type: T.Type) -> None:
    """RuntimeError unless a Python value is one of a type of scripted code."""
    try:
        torch._C._script_check(value, type.handle())
    except RuntimeError as e:
        raise RuntimeError(f"expected a value of type {type.annotation_str}: {e}") from None


def _jit_object_is_non_holding(module) -> bool:
    """Whether the object keeps its code alive: always."""
    return False
