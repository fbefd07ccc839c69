"""Patterns written as functions: a function is traced into a graph, the graph read as a pattern,
and what it finds replaced by another function traced on the same arguments.

The first pattern ignores numbers, since sizes differ from call to call. A match of it is looked at
again by a pattern traced from the very arguments that were found; that one knows its numbers."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import fx
from torch._inductor._matching.expressions import (
    CallFunction,
    ExclusiveKeywordArg,
    Ignored,
    KeywordArg,
    MultiOutputPattern,
    PatternExpr,
    Search,
)
from torch._inductor._matching.match import (
    Check,
    GraphPatternEntry,
    LoweringPatternEntry,
    Match,
    ReplacementPatternEntry,
    Trace,
    is_match,
)
from torch._inductor._matching.printing import PatternPrettyPrinter
from torch.utils import _pytree as pytree

__all__ = [
    "clone_graph",
    "fwd_only",
    "fx_to_pattern",
    "gen_pattern",
    "gen_register_replacement",
    "init_once_fakemode",
    "joint_fwd_bwd",
    "register_graph_pattern",
    "register_lowering_pattern",
    "register_replacement",
]

_NUMBERS = (int, float, bool, list, torch.device, torch.dtype)
# (search function, example inputs, tracer, scalar workaround, pattern) of patterns stored traced.
# There are none: patterns are traced when they are first asked for.
_known_precompiled_patterns: list[tuple[object, ...]] = []


def _return_true(match: Match) -> bool:
    return True


# ---- tracing --------------------------------------------------------------------------------


@contextlib.contextmanager
def in_fake_mode(values: object) -> Iterator[None]:
    """The mode that fakes among the values belong to, if there are any."""
    from torch._guards import detect_fake_mode

    mode = detect_fake_mode(pytree.tree_leaves(values))
    with mode if mode is not None else contextlib.nullcontext():
        yield


def fwd_only(
    fn: Callable,
    args: Sequence[object],
    *,
    run_functional_passes: bool = True,
    get_decomp_fn: Callable[[], dict] | None = None,
) -> fx.GraphModule:
    """The graph of a function on example arguments, without derivatives."""
    from torch.fx.experimental.proxy_tensor import make_fx

    with torch.no_grad():
        gm = make_fx(fn, _table(get_decomp_fn))(*args)
    return _tidied(gm, run_functional_passes)


def _table(get_decomp_fn: Callable[[], dict] | None = None) -> dict:
    from torch._inductor import decomposition

    return decomposition.select_decomp_table() if get_decomp_fn is None else get_decomp_fn()


def _tidied(gm: fx.GraphModule, without_copies: bool) -> fx.GraphModule:
    """The graph without operators that do nothing, as those that are compiled are."""
    from torch._inductor.fx_passes.post_grad import remove_noop_ops

    if without_copies:
        remove_noop_ops(gm.graph)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm


def joint_fwd_bwd(fn: Callable, args: Sequence[object]) -> fx.GraphModule:
    """The graph of a function together with its derivative: its inputs are the arguments and the
    tangents, its outputs the results and the gradients."""
    from torch._functorch.aot_autograd import aot_function

    def record(joint: fx.GraphModule, inputs: Sequence[object], **kwargs: object) -> tuple:
        raise _Traced(clone_graph(joint))

    def unused(gm: fx.GraphModule, inputs: Sequence[object]) -> Callable:
        raise RuntimeError("joint_fwd_bwd: the function has no derivative")

    traced = aot_function(
        fn,
        unused,
        partition_fn=record,
        decompositions=_table(),
        keep_inference_input_mutations=True,
        enable_log=False,
    )
    try:
        with torch.enable_grad():
            traced(*args)
    except _Traced as found:
        gm = found.gm
    else:
        raise RuntimeError("joint_fwd_bwd: nothing was traced")
    gm.graph.set_codegen(fx.graph.CodeGen())
    return _tidied(gm, True)


class _Traced(Exception):
    """Carries a joint graph out of the compiler, which has nothing to compile."""

    def __init__(self, gm: fx.GraphModule) -> None:
        super().__init__("traced")
        self.gm = gm


def clone_graph(input_graph: fx.GraphModule) -> fx.GraphModule:
    """A copy with nodes of its own."""
    copied = fx.Graph()
    values: dict[fx.Node, fx.Node] = {}
    for node in input_graph.graph.nodes:
        values[node] = copied.node_copy(node, values.__getitem__)
    return fx.GraphModule(input_graph, copied)


# ---- graphs as patterns ---------------------------------------------------------------------


class _SymbolicNumber(PatternExpr):
    """A size that is an expression of symbols."""

    def __init__(self, value: torch.SymInt) -> None:
        self.value = value

    def matches(self, value: object, search: Search) -> bool:
        found = value.meta.get("val") if isinstance(value, fx.Node) else value
        if isinstance(found, (int, torch.SymInt)) and str(found) == str(self.value):
            return True
        return search.fail("{} is not the size {}", value, self.value)


class _GraphReader:
    """Turns the nodes of a traced function into expressions."""

    def __init__(
        self,
        argnames: Sequence[str],
        ignore_types: tuple[type, ...],
        scalar_workaround: dict[str, float | int],
        exclusive_arg_names: Sequence[str],
    ) -> None:
        self.argnames = list(argnames)
        self.ignore_types = ignore_types
        self.scalars = {value: name for name, value in scalar_workaround.items()}
        self.exclusive = set(exclusive_arg_names)
        self.made: dict[fx.Node, PatternExpr] = {}
        self.inputs = 0

    def read(self, graph: fx.Graph) -> PatternExpr:
        """The pattern that ends with the outputs of the graph."""
        for node in graph.nodes:
            if node.op == "output":
                found = node.args[0]
                many = list(found) if isinstance(found, (list, tuple)) else [found]
                outputs = [None if o is None else self.made[o] for o in many]
                return outputs[0] if len(outputs) == 1 else MultiOutputPattern(outputs)
            self.made[node] = self._expression(node)
        raise AssertionError("a graph without an output")

    def _expression(self, node: fx.Node) -> PatternExpr:
        if node.op == "placeholder":
            return self._argument(node)
        if isinstance(node.meta.get("val"), torch.SymInt):
            return Ignored() if int in self.ignore_types else _SymbolicNumber(node.meta["val"])
        if node.op == "get_attr":
            return Ignored()
        if node.op != "call_function":
            raise NotImplementedError(f"a pattern with {node.op} {node.target}")
        return CallFunction(
            node.target,
            *[self._value(a) for a in node.args],
            **{name: self._value(a) for name, a in node.kwargs.items()},
            _users=len(node.users),
        )

    def _argument(self, node: fx.Node) -> PatternExpr:
        number = self.inputs
        self.inputs += 1
        name = self.argnames[number] if number < len(self.argnames) else node.name
        return ExclusiveKeywordArg(name) if name in self.exclusive else KeywordArg(name)

    def _value(self, value: object) -> object:
        if isinstance(value, fx.Node):
            return self.made[value]
        if isinstance(value, (float, int)) and not isinstance(value, bool):
            if value in self.scalars:
                return KeywordArg(self.scalars[value])
        if isinstance(value, self.ignore_types):
            holds = isinstance(value, (list, tuple)) and any(isinstance(v, fx.Node) for v in value)
            if not holds:
                return Ignored()
        if isinstance(value, (list, tuple)):
            return (
                type(value)(self._value(v) for v in value)
                if type(value) in (list, tuple)
                else [self._value(v) for v in value]
            )
        if isinstance(value, dict):
            return {key: self._value(v) for key, v in value.items()}
        return value


def fx_to_pattern(
    gm: fx.GraphModule | fx.Graph,
    ignore_types: Sequence[type] = (),
    argnames: Sequence[str] = (),
    scalar_workaround: dict[str, float | int] | None = None,
    exclusive_arg_names: Sequence[str] = (),
) -> PatternExpr:
    """The pattern of a graph. Values of ignored types fit anything; scalar_workaround gives names
    to numbers that tracing made constants."""
    graph = gm.graph if isinstance(gm, fx.GraphModule) else gm
    reader = _GraphReader(
        argnames, tuple(ignore_types), scalar_workaround or {}, exclusive_arg_names
    )
    return reader.read(graph)


def _names(fn: Callable) -> list[str]:
    return list(inspect.signature(fn).parameters)


def gen_pattern(
    search_fn: Callable,
    example_inputs: Sequence[object],
    trace_fn: Trace,
    scalar_workaround: dict[str, float | int] | None = None,
    exclusive_arg_names: Sequence[str] = (),
) -> PatternExpr:
    """The pattern of a function, for any numbers."""
    return gen_pattern_and_search_gm(
        search_fn, example_inputs, trace_fn, scalar_workaround, exclusive_arg_names
    )[0]


def gen_pattern_and_search_gm(
    search_fn: Callable,
    example_inputs: Sequence[object],
    trace_fn: Trace,
    scalar_workaround: dict[str, float | int] | None = None,
    exclusive_arg_names: Sequence[str] = (),
) -> tuple[PatternExpr, fx.GraphModule]:
    """gen_pattern, with the graph it was read from."""
    scalars = scalar_workaround or {}
    flat = [*example_inputs, *scalars.values()]
    with in_fake_mode(flat):
        gm = trace_fn(search_fn, flat)
    names = [n for n in _names(search_fn) if n not in scalars]
    pattern = fx_to_pattern(gm, _NUMBERS, [*names, *scalars], scalars, exclusive_arg_names)
    return pattern, gm


# ---- registration ---------------------------------------------------------------------------


class _Replacement:
    """A search function and its replacement, for matches of the pattern of the former."""

    def __init__(
        self,
        search_fn: Callable,
        replace_fn: Callable,
        example_inputs: Sequence[object],
        trace_fn: Trace,
        extra_check: Check,
        scalar_workaround: dict[str, float | int],
        exclusive_arg_names: Sequence[str],
    ) -> None:
        self.search_fn, self.replace_fn = search_fn, replace_fn
        self.trace_fn, self.extra_check = trace_fn, extra_check
        self.scalars = scalar_workaround
        self.exclusive = exclusive_arg_names
        self.names = [n for n in _names(search_fn) if n not in scalar_workaround]
        self.names += list(scalar_workaround)
        given = [*example_inputs, *scalar_workaround.values()]
        self.examples = dict(zip(self.names, given, strict=False))
        missing = [n for n in self.names if n not in self.examples]
        if missing:
            raise RuntimeError(f"register_replacement: no example input for {', '.join(missing)}")

    def check(self, match: Match) -> bool:
        """Whether the pattern, traced anew from what was found, still fits and the caller agrees;
        then the replacement is traced."""
        values = [self._value(match, name) for name in self.names]
        if any(v is _MISSING for v in values):
            return False
        with in_fake_mode(values):
            try:
                traced = self.trace_fn(self.search_fn, values)
            except RuntimeError:
                return False  # the arguments found are none that the function takes
            exact = fx_to_pattern(
                traced, (), self.names, self._found_scalars(match), self.exclusive
            )
            again = exact.match(match.output_nodes()[0])
            if not is_match(again) or not self.extra_check(again):
                return False
            match.replacement_graph = self.trace_fn(self.replace_fn, values)
        match.kwargs = {**match.kwargs, **again.kwargs}
        return True

    def _found_scalars(self, match: Match) -> dict[str, float | int]:
        return {name: match.kwargs[name] for name in self.scalars if name in match.kwargs}

    def _value(self, match: Match, name: str) -> object:
        if name not in match.kwargs:
            return self.scalars.get(name, self.examples[name])
        given = match.kwargs[name]
        found = fx.map_arg(given, lambda n: n.meta.get("val", _MISSING))
        example = self.examples[name]
        if isinstance(found, torch.Tensor) and isinstance(example, torch.Tensor):
            if example.requires_grad and not found.requires_grad:
                found = _differentiable(found)
        return found

    def arguments(self, **kwargs: object) -> list[object]:
        """The nodes for the inputs of the replacement graph: the arguments, then the tangents."""
        named = [kwargs.get(name, self.examples[name]) for name in self.names]
        return [*named, *(v for name, v in kwargs.items() if name not in self.names)]


_MISSING = object()


def _differentiable(found: torch.Tensor) -> torch.Tensor:
    if not (found.is_floating_point() or found.is_complex()):
        return found
    made = torch.empty_strided(found.size(), found.stride(), dtype=found.dtype, device=found.device)
    return made.requires_grad_(True)


def register_replacement(
    search_fn: Callable,
    replace_fn: Callable,
    example_inputs: Sequence[object],
    trace_fn: Trace,
    pass_dicts: object,
    extra_check: Check = _return_true,
    scalar_workaround: dict[str, float | int] | None = None,
    exclusive_arg_names: Sequence[str] = (),
    search_fn_pattern: PatternExpr | None = None,
    skip_duplicates: bool = False,
) -> bool:
    """Replaces what search_fn computes by replace_fn wherever the passes find it. The functions
    take the same arguments; trace_fn is fwd_only or joint_fwd_bwd."""
    scalars = scalar_workaround or {}
    maker = _Replacement(
        search_fn, replace_fn, example_inputs, trace_fn, extra_check, scalars, exclusive_arg_names
    )
    pattern = search_fn_pattern
    if pattern is None:
        pattern, _ = gen_pattern_and_search_gm(
            search_fn, example_inputs, trace_fn, scalars, exclusive_arg_names
        )
    if _is_known(pattern, pass_dicts, skip_duplicates):
        return False
    entry = ReplacementPatternEntry(
        pattern=pattern, extra_check=maker.check, normalize_args=maker.arguments
    )
    entry.register(pass_dicts)
    return True


def _is_known(pattern: PatternExpr, pass_dicts: object, skip_duplicates: bool) -> bool:
    """Whether a pass has an equal pattern already: that one would never let this one apply."""
    many = pass_dicts if isinstance(pass_dicts, (list, tuple)) else [pass_dicts]
    text = PatternPrettyPrinter.run(pattern)
    known = False
    for one in many:
        seen = getattr(one, "seen_patterns", None)
        if seen is None:
            continue
        known = known or text in seen
        seen[text].append(text)
    return known and skip_duplicates


def gen_register_replacement(
    unique_name: str,
    search_fn: Callable,
    replace_fn: Callable,
    example_inputs: Sequence[object],
    trace_fn: Trace,
    pass_dicts: object,
    extra_check: Check = _return_true,
    scalar_workaround: dict[str, float | int] | None = None,
    exclusive_arg_names: Sequence[str] = (),
    skip_duplicates: bool = False,
) -> None:
    """register_replacement with a name under which the pattern might be stored."""
    register_replacement(
        search_fn,
        replace_fn,
        example_inputs,
        trace_fn,
        pass_dicts,
        extra_check,
        scalar_workaround,
        exclusive_arg_names,
        skip_duplicates=skip_duplicates,
    )


def _handler_of(
    caller: str,
    entry: type[GraphPatternEntry | LoweringPatternEntry],
    pattern: PatternExpr,
    check: Check,
    pass_dict: object,
    prepend: bool,
) -> Callable[[Callable], Callable]:
    def decorator(handler: Callable) -> Callable:
        if not callable(handler):
            raise TypeError(f"{caller}: expected a function, got {type(handler)}")
        entry(pattern, check, handler).register(pass_dict, prepend=prepend)
        return handler

    return decorator


def register_graph_pattern(
    pattern: PatternExpr,
    extra_check: Check = _return_true,
    *,
    pass_dict: object,
    prepend: bool = False,
) -> Callable[[Callable], Callable]:
    """Decorates handler(match, *args, **kwargs), which changes the graph where the pattern fits."""
    name = "register_graph_pattern"
    return _handler_of(name, GraphPatternEntry, pattern, extra_check, pass_dict, prepend)


def register_lowering_pattern(
    pattern: PatternExpr,
    extra_check: Check = _return_true,
    *,
    pass_dict: object,
    prepend: bool = False,
) -> Callable[[Callable], Callable]:
    """Decorates handler(match, *args, **kwargs), which is a lowering of what the pattern finds."""
    name = "register_lowering_pattern"
    register = _handler_of(name, LoweringPatternEntry, pattern, extra_check, pass_dict, prepend)

    def decorator(handler: Callable) -> Callable:
        register(handler)._inductor_lowering_function = True
        return handler

    return decorator


def init_once_fakemode(fn: Callable[..., object]) -> Callable[[], object]:
    """A function that runs once, on fake tensors: for registering patterns."""

    @functools.cache
    @functools.wraps(fn)
    def lazy_init() -> object:
        from torch._dynamo.utils import counters
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.utils._python_dispatch import _disable_current_modes

        before = dict(counters["inductor"])
        with _disable_current_modes(), FakeTensorMode():
            result = fn()
        counters["inductor"].clear()
        counters["inductor"].update(before)
        return result

    return lazy_init
