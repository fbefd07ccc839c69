"""Programs as graphs: symbolic_trace turns a module or function into a GraphModule, whose graph
can be read, edited and turned back into Python code. docs/fx.md is the introduction."""

from torch.fx import immutable_collections, node  # noqa: F401  isort: skip
from torch.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from torch.fx.graph import CodeGen, Graph
from torch.fx.graph_module import GraphModule
from torch.fx.interpreter import Interpreter, Transformer
from torch.fx.node import Node, has_side_effect, map_arg
from torch.fx.proxy import Proxy
from torch.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "PH",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]

# Found as attributes without being imported first, as programs expect of a package.
_LAZY = frozenset(
    "annotate config experimental operator_schemas passes tensor_type traceback _pytree "
    "_lazy_graph_module _utils _compatibility".split()
)


def __getattr__(name: str) -> object:
    if name in _LAZY:
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'torch.fx' has no attribute '{name}'")
