"""What operators that take functions share: tracing a function into a graph of its own, recording a
call of the operator, and gradients by running the function again."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._ops import HigherOrderOperator
from torch._subclasses.functional_tensor import CppFunctionalizeAPI, FunctionalTensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

__all__ = [
    "UnsupportedAliasMutationException",
    "autograd_not_implemented",
    "being_traced",
    "check_same_outputs",
    "differentiated",
    "flattened",
    "functionalized",
    "lifted",
    "record",
    "reenter_make_fx",
    "stack_trees",
    "symbols_of_no_result",
    "traced_now",
    "unique_graph_name",
    "vjp_of",
]


class UnsupportedAliasMutationException(RuntimeError):
    """A function given to an operator writes to its arguments, or returns one of them."""


def being_traced() -> bool:
    """Whether a dispatch mode sees operators now."""
    return torch._C._len_torch_dispatch_stack() > 0


# ---- graphs
def reenter_make_fx(fn: Callable[..., Any]) -> Callable[..., torch.fx.GraphModule]:
    """fn as a function that returns its graph, traced as the trace around it is."""
    from torch.fx.experimental import proxy_tensor

    def traced(*args: Any) -> torch.fx.GraphModule:
        tracer = proxy_tensor._CURRENT_MAKE_FX_TRACER
        if tracer is None:
            raise RuntimeError("reenter_make_fx() is for traces; none is running")
        return tracer.trace_subgraph(fn, *args)

    return traced


def plain(value: Any) -> Any:
    """A traced value without its history and without what functionalisation put around it."""
    if not isinstance(value, Tensor):
        return value
    with _unrecorded():
        if isinstance(value, FunctionalTensor):
            value = value.from_functional()
        elif torch._is_functional_tensor(value):
            torch._sync(value)
            value = torch._from_functional_tensor(value)
        return value.detach()


def traced_now(
    fn: Callable[..., Any], example: Sequence[Any], operands: Sequence[Any]
) -> torch.fx.GraphModule:
    """The graph of fn on values like `example`, for use by the trace that runs, which sees the
    operands. The program may have changed what fn refers to when the gradients are computed:
    kernels for Autograd trace functions, and their derivatives, when they are called."""
    context = CppFunctionalizeAPI()
    functional = any(isinstance(x, Tensor) and torch._is_functional_tensor(x) for x in operands)
    with context.redispatch_to_next():
        graph = reenter_make_fx(context.functionalize(fn) if functional else fn)
        return graph(*map(plain, example))


def results_of(graph: torch.fx.GraphModule, example: Sequence[Any]) -> list[Any]:
    """What a graph of the trace that runs returns, flat."""
    with CppFunctionalizeAPI().redispatch_to_next(), _unrecorded(), torch.no_grad():
        return pytree.tree_leaves(graph(*map(plain, example)))


def unique_graph_name(proxy_mode: Any, prefix: str) -> str:
    """`prefix` with the first number that no attribute of the traced module has."""
    root, number = proxy_mode.tracer.root, 0
    while hasattr(root, f"{prefix}_{number}"):
        number += 1
    return f"{prefix}_{number}"


def record(
    mode: Any,
    op: HigherOrderOperator,
    graphs: dict[str, torch.fx.GraphModule],
    args: tuple,
    out: Any,
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """Adds the call op(*args) to the trace and returns `out`, known as its result. `graphs` are
    those among the arguments, by the prefix of their names in the traced module. A result that is
    an argument is copied: the trace knows a tensor as one thing.
    """
    from torch.fx.experimental.proxy_tensor import track_tensor_tree

    given = {id(x) for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
    out = pytree.tree_map_only(Tensor, lambda t: t.clone() if id(t) in given else t, out)

    for prefix, graph in graphs.items():
        mode.tracer.root.register_module(unique_graph_name(mode, prefix), graph)
    unwrap = mode.tracer.unwrap_proxy
    proxies = pytree.tree_map(unwrap, args)
    named = pytree.tree_map(unwrap, kwargs or {})
    made = mode.tracer.create_proxy("call_function", op, proxies, named)
    return track_tensor_tree(out, made, constant=None, tracer=mode.tracer)


def check_same_outputs(name: str, first: Any, second: Any) -> None:
    """Raises unless two results have one structure, and tensors of the same kind and shape."""
    a, a_spec = pytree.tree_flatten(first)
    b, b_spec = pytree.tree_flatten(second)
    if len(a) != len(b) or a_spec != b_spec:
        raise RuntimeError(
            f"{name}: expected the functions to return the same structure, but one returns "
            f"{len(a)} value(s) as {a_spec} and the other {len(b)} as {b_spec}"
        )
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if not (isinstance(x, Tensor) and isinstance(y, Tensor)):
            continue
        if (x.shape, x.dtype, x.device) != (y.shape, y.dtype, y.device):
            raise RuntimeError(
                f"{name}: expected each output to have the same metadata, but output {i} is "
                f"{x.dtype}{list(x.shape)} on {x.device} of one and {y.dtype}{list(y.shape)} on "
                f"{y.device} of the other"
            )


class flattened:
    """fn on flat arguments of the tree `spec`, with its results flat; `structure` is theirs,
    once it has run.
    """

    def __init__(self, fn: Callable[..., Any], spec: Any) -> None:
        self.fn, self.spec, self.structure = fn, spec, None
        self.__name__ = getattr(fn, "__name__", type(fn).__name__)

    def __call__(self, *values: Any) -> tuple:
        result = self.fn(*pytree.tree_unflatten(list(values), self.spec))
        leaves, self.structure = pytree.tree_flatten(result)
        return tuple(leaves)


def stack_trees(trees: Sequence[Any], dim: int = 0) -> Any:
    """Tensors of equal trees, stacked."""
    return pytree.tree_map(lambda *parts: torch.stack(parts, dim), *trees)


# ---- gradients
def autograd_not_implemented(
    op: HigherOrderOperator, deferred_error: bool = True
) -> Callable[..., Any]:
    """A kernel for Autograd that runs the operator and raises in the backward pass."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            result = op(*args, **kwargs)
        if not torch.is_grad_enabled():
            return result
        leaves = pytree.tree_leaves((args, kwargs))
        source = next((x for x in leaves if isinstance(x, Tensor) and x.requires_grad), None)
        if source is None:
            return result
        if not deferred_error:
            raise RuntimeError(f"Autograd not implemented for {op!s}")
        return pytree.tree_map_only(
            Tensor,
            lambda t: _Undifferentiable.apply(str(op), t, source) if _has_derivative(t) else t,
            result,
        )

    return kernel


class _Undifferentiable(torch.autograd.Function):
    """A value that depends on another in a way that cannot be differentiated."""

    @staticmethod
    def forward(ctx, name: str, value: Tensor, source: Tensor) -> Tensor:
        ctx.name = name
        return value.detach()

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple:
        raise RuntimeError(f"Autograd not implemented for {ctx.name}")


def vjp_of(
    fn: Callable[..., Any], wanted: Sequence[bool], given: Sequence[bool] | None = None
) -> Callable[..., tuple]:
    """A function of the arguments of fn, then of gradients of its results, that runs fn again and
    returns the gradients of the wanted arguments. `given` says which results have a gradient among
    the arguments; by default all tensors do.
    """
    count = len(wanted)

    def backward(*values: Tensor) -> tuple:
        with torch.enable_grad():
            operands = [
                value.detach().requires_grad_() if want else value
                for value, want in zip(values[:count], wanted, strict=True)
            ]
            results = [x for x in pytree.tree_leaves(fn(*operands)) if isinstance(x, Tensor)]
        if given is not None:
            results = [x for x, has in zip(results, given, strict=True) if has]
        pairs = [(r, g) for r, g in zip(results, values[count:], strict=True) if r.requires_grad]
        leaves = [x for x, want in zip(operands, wanted, strict=True) if want]
        if not pairs:
            return tuple(torch.zeros_like(x) for x in leaves)
        outputs, grads = zip(*pairs, strict=True)
        found = torch.autograd.grad(outputs, leaves, grads, allow_unused=True)
        return tuple(
            torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)
        )

    return backward


def differentiable(values: Sequence[Any]) -> list[bool]:
    """Which values can have gradients."""
    return [isinstance(x, Tensor) and x.requires_grad for x in values]


class _Differentiated(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx, run: Callable, grad_run: Callable, hidden: int, spec: list, *operands: Any
    ) -> tuple:
        with torch._C._AutoDispatchBelowAutograd():
            result = run(*operands)
        shown, kept = (result[:-hidden], result[-hidden:]) if hidden else (result, ())
        leaves, tree = pytree.tree_flatten(shown)
        spec.append(tree)
        ctx.grad_run, ctx.wanted = grad_run, differentiable(operands)
        ctx.plain = [None if isinstance(x, Tensor) else x for x in operands]
        ctx.hidden = hidden
        ctx.save_for_backward(*(x for x in operands if isinstance(x, Tensor)), *kept)
        ctx.mark_non_differentiable(
            *(x for x in leaves if isinstance(x, Tensor) and not _has_derivative(x))
        )
        # A result that is an argument would be taken for one written in place.
        given = {id(x) for x in operands}
        return tuple(x.clone() if id(x) in given else x for x in leaves)

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple:
        saved = list(ctx.saved_tensors)
        kept = [saved.pop() for _ in range(ctx.hidden)][::-1]
        rest = iter(saved)
        operands = [next(rest) if x is None else x for x in ctx.plain]
        extra = (kept,) if ctx.hidden else ()
        found = iter(ctx.grad_run(operands, grads, ctx.wanted, *extra))
        return (None,) * 4 + tuple(next(found) if want else None for want in ctx.wanted)


def _has_derivative(value: Tensor) -> bool:
    return value.is_floating_point() or value.is_complex()


def differentiated(
    run: Callable[..., Any],
    grad_run: Callable[..., Sequence[Tensor]],
    operands: Sequence[Any],
    hidden: int = 0,
) -> Any:
    """run(*operands) as one step of the history. In the backward pass
    grad_run(operands, gradients of the results, wanted) returns the gradients of wanted operands.
    The last `hidden` results are not returned but kept, as a further argument of grad_run.
    """
    spec: list = []
    leaves = _Differentiated.apply(run, grad_run, hidden, spec, *operands)
    return pytree.tree_unflatten(leaves, spec[0])


# ---- tensors that functions refer to
class _Noted(TorchFunctionMode):
    """Notes the tensors that are used inside and were not made there."""

    def __init__(self, known: Sequence[Any]) -> None:
        super().__init__()
        self.known = {id(x): x for x in known if isinstance(x, Tensor)}
        self.captured: dict[int, Tensor] = {}

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None):
        for x in pytree.tree_leaves((args, kwargs)):
            self.note(x)
        out = func(*args, **(kwargs or {}))
        for x in pytree.tree_leaves(out):
            if isinstance(x, Tensor) and id(x) not in self.captured:
                self.known[id(x)] = x
        return out

    def note(self, x: Any) -> None:
        if isinstance(x, Tensor) and id(x) not in self.known:
            self.captured.setdefault(id(x), x)


class _Exchanged(TorchFunctionMode):
    """Inside, other tensors stand for some."""

    def __init__(self, by_id: dict[int, Tensor]) -> None:
        super().__init__()
        self.by_id = by_id

    def exchanged(self, tree: Any) -> Any:
        return pytree.tree_map_only(Tensor, lambda t: self.by_id.get(id(t), t), tree)

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None):
        return func(*self.exchanged(args), **self.exchanged(kwargs or {}))


def lifted(
    functions: Sequence[Callable[..., Any]], example: Sequence[Any]
) -> tuple[list[Callable[..., Any]], list[Tensor]]:
    """The functions with the tensors that they refer to as further arguments, and these tensors.
    Operators that take functions know arguments only: gradients reach them, and traces find them.
    Each function runs once, on the example.
    """
    captured: dict[int, Tensor] = {}
    for fn in functions:
        with _unrecorded(), symbols_of_no_result(), _Noted(example) as noted:
            result = fn(*example)
        for x in pytree.tree_leaves(result):
            noted.note(x)
        captured.update(noted.captured)
    tensors = list(captured.values())
    if not tensors:
        return list(functions), []
    return [_with_arguments(fn, tensors) for fn in functions], tensors


def symbols_of_no_result(mode: Any = None) -> contextlib.AbstractContextManager:
    """A block whose results are not those of a node, nor the symbols that data in it stands for."""
    from torch._guards import detect_fake_mode

    env = getattr(mode or detect_fake_mode(), "shape_env", None)
    return contextlib.nullcontext() if env is None else env.ignore_fresh_unbacked_symbols()


def _unrecorded() -> contextlib.AbstractContextManager:
    from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

    return disable_proxy_modes_tracing()


def _with_arguments(fn: Callable[..., Any], tensors: Sequence[Tensor]) -> Callable[..., Any]:
    count = len(tensors)

    def call(*values: Any) -> Any:
        own, extra = values[: len(values) - count], values[len(values) - count :]
        by_id = {id(t): new for t, new in zip(tensors, extra, strict=True)}
        with _Exchanged(by_id) as exchange:
            return exchange.exchanged(fn(*own))

    call.__name__ = getattr(fn, "__name__", type(fn).__name__)
    return call


# ---- functionalization
def functionalized(op: HigherOrderOperator, functions: Sequence[int]) -> Callable[..., Any]:
    """A kernel for py_functionalize_impl: arguments are unwrapped, the functions among them (by
    position) functionalized, and results wrapped.
    """

    def kernel(ctx: Any, *args: Any) -> Any:
        inner = list(ctx.unwrap_tensors(args))
        for i in functions:
            inner[i] = ctx.functionalize(args[i])
        with ctx.redispatch_to_next():
            return ctx.wrap_tensors(op(*inner))

    return kernel


COMPOSITE = DispatchKey.CompositeExplicitAutograd
