"""Graphs of traced programs: the names, and what runs without a trace (wrap). Tracing raises
NotImplementedError."""

from torch import _later
from torch.fx.graph_module import GraphModule

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]


def wrap(fn_or_name):
    """Marks a function of the module that calls it as opaque to tracing; usable as a decorator."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    return fn_or_name


def has_side_effect(fn):
    """Marks a function whose call must stay in a graph."""
    return fn


_SUBMODULES = _later.install(
    __name__,
    """
    node: Node Target Argument map_arg map_aggregate has_side_effect
    graph: Graph CodeGen PythonCode
    proxy: Proxy TracerBase GraphAppendingTracer Attribute ParameterProxy
    _symbolic_trace: Tracer ProxyableClassMeta symbolic_trace wrap is_fx_tracing PHBase PH
    interpreter: Interpreter Transformer
    subgraph_rewriter: replace_pattern Match
    traceback: annotate annotate_fn preserve_node_meta
    tensor_type: TensorType Dyn
    immutable_collections: immutable_list immutable_dict
    operator_schemas: get_signature_for_torch_op normalize_function
    passes.shape_prop: ShapeProp TensorMetadata
    passes.graph_drawer: FxGraphDrawer
    passes.split_module: split_module
    passes.regional_inductor: regional_inductor
    passes.runtime_assert: insert_deferred_runtime_asserts
    experimental.optimization: fuse
    experimental.const_fold: split_const_subgraphs
    experimental.meta_tracer: symbolic_trace
    experimental._config:
    """,
)
globals().update(
    _later.names(
        __name__,
        "Graph Interpreter Node Proxy ProxyableClassMeta Tracer Transformer "
        "CodeGen PH map_arg replace_pattern symbolic_trace",
    )
)


def __getattr__(name):
    from importlib import import_module

    if name in _SUBMODULES or name == "graph_module":
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'torch.fx' has no attribute '{name}'")
