"""The names under which programs reach the compiler's front: marks for functions, settings, resets.
See torch.compiler."""

from torch import _later
from torch._dynamo import config, eval_frame, exc
from torch._dynamo.eval_frame import OptimizedModule, is_dynamo_supported
from torch.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    is_dynamo_compiling,
    nested_compile_region,
    reset,
    set_stance,
    substitute_in_graph,
)

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "eval_frame",
    "exc",
    "export",
    "explain",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_compiling",
    "is_dynamo_supported",
    "is_inductor_supported",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "nested_compile_region",
    "optimize",
    "register_backend",
    "reset",
    "reset_code_caches",
    "run",
    "set_stance",
    "skip",
    "substitute_in_graph",
]

_backends = {}
_backend_tags = {}
# Backends of PyTorch that torch.compile takes for what they are here: nothing is compiled.
_ACCEPTED = frozenset(
    "cudagraphs inductor openxla tvm eager eager_noexcept aot_eager aot_eager_decomp_partition "
    "aot_ts ts".split()
)


def register_backend(compiler_fn=None, name=None, tags=()):
    """Makes a backend known by name."""
    if compiler_fn is None:
        return lambda fn: register_backend(fn, name=name, tags=tags)
    name = name or compiler_fn.__name__
    _backends[name], _backend_tags[name] = compiler_fn, frozenset(tags)
    return compiler_fn


def list_backends(exclude_tags=("debug", "experimental")):
    """Names of the backends that are there: those of register_backend."""
    return sorted(n for n in _backends if _backend_tags[n].isdisjoint(exclude_tags or ()))


def lookup_backend(compiler_fn):
    """The function of a backend registered by register_backend."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn in _backends:
        return _backends[compiler_fn]
    if compiler_fn not in _ACCEPTED:
        raise exc.InvalidBackend(name=compiler_fn)
    raise NotImplementedError(f"lookup_backend: {compiler_fn!r} is not implemented in this version")


def is_inductor_supported() -> bool:
    """Whether kernels can be generated: not yet."""
    return False


def reset_code_caches() -> None:
    """Forgets compiled code; there is none."""
    return None


def graph_break(msg="") -> None:
    """Where a trace would end; nothing to do."""
    return None


def optimize(backend="inductor", *, nopython=False, **kwargs):
    """The decorator behind torch.compile."""
    import torch

    return torch.compile(backend=backend, fullgraph=nopython, dynamic=kwargs.get("dynamic"))


def run(fn=None):
    """fn with code that is compiled already, and no new."""
    return fn


skip = disallow_in_graph = forbid_in_graph = run


def mark_dynamic(t, index, *, hint_override=None, min=None, max=None, specialize_on=None) -> None:
    """Says that a size varies; sizes are never baked in."""
    return None


def mark_static(t, index=None) -> None:
    """Says that a size does not vary."""
    return None


def mark_static_address(t, guard=True) -> None:
    """Says that a tensor stays where it is."""
    return None


maybe_mark_dynamic = mark_unbacked = override_optimization_hint = mark_dynamic

globals().update(_later.names(__name__, "explain export"))
_SUBMODULES = _later.install(
    __name__,
    """
    backends.registry: register_backend
    backends.common: aot_autograd
    decorators: mark_static_address
    """,
)
__getattr__ = _later.submodules(__name__, _SUBMODULES | {"testing", "utils"})
