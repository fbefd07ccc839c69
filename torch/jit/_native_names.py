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


def _jit_interpret_graph(graph: Graph, inputs) -> object:
    """The result of a graph."""
    return _create_function_from_graph("graph", graph)(*inputs)


def _freeze_module(module, preserved_attrs=(), freeze_interfaces=True, preserve_parameters=False):
    """A frozen copy of what `module._c` stands for."""
    from torch.jit._freeze import freeze

    return freeze(getattr(module, "_module", module), list(preserved_attrs), check=False)._c


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
