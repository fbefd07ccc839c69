"""ShapeEnv: the symbols of one traced program. Expressions, ranges and decisions are torch._C's;
here are the sources of symbols, the ways symbols are made for inputs, and the views of the state as
sympy objects that other code reads."""

import contextlib
import itertools
import logging
import math
import operator
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch._guards import Source
from torch.fx.experimental import _sympy_bridge as bridge
from torch.fx.experimental._shape_contexts import (
    DimDynamic,
    StatefulSymbolicContext,
    StatelessSymbolicContext,
    StrictMinMaxConstraint,
    SymbolicContext,
)
from torch.fx.experimental._shape_guards import GuardProducer

if TYPE_CHECKING:
    import sympy

log = logging.getLogger("torch.fx.experimental.symbolic_shapes")


class ShapeGuard(NamedTuple):
    """A condition on the inputs under which the trace is valid, and where it was taken."""

    expr: Any
    sloc: str
    size_oblivious: bool = False


class RuntimeAssert(NamedTuple):
    """A condition that the traced program checks when it runs."""

    expr: Any
    msg: str
    stack: str = ""


class ShapeEnvSettings(NamedTuple):
    """What a ShapeEnv was made with."""

    allow_scalar_outputs: bool = True
    allow_dynamic_output_shape_ops: bool = True
    assume_static_by_default: bool = False
    specialize_zero_one: bool = True
    duck_shape: bool = True
    prefer_deferred_runtime_asserts_over_guards: bool = False
    allow_complex_guards_as_runtime_asserts: bool = False
    trace_asserts: bool = False


def _log_symbol(
    name: str, value: Any, source: Source | None, low: int | None, high: int | None
) -> None:
    """What a symbol stands for, for TORCH_LOGS=dynamic."""
    span = f"[{'-int_oo' if low is None else low}, {'int_oo' if high is None else high}]"
    if value is None:
        log.info("create_unbacked_symbol %s %s", name, span)
    else:
        place = "an unnamed value" if source is None else source.name()
        log.info("create_symbol %s = %s for %s %s", name, value, place, span)


def _infer_unit(value: int) -> bool:
    return value in (0, 1)


class ShapeEnv(torch._C._ShapeEnv):
    """The symbols of one traced program and what was decided about them."""

    def __init__(
        self,
        *,
        should_record_events: bool | None = None,
        tracked_fakes: list | None = None,
        **settings: Any,
    ) -> None:
        unknown = set(settings) - set(ShapeEnvSettings._fields)
        if unknown:
            raise TypeError(f"ShapeEnv() got unexpected arguments {sorted(unknown)}")
        given = {name: value for name, value in settings.items() if value is not None}
        self.settings = ShapeEnvSettings(**given)
        self._defer_instead_of_guard = self.settings.prefer_deferred_runtime_asserts_over_guards
        self.tracked_fakes = tracked_fakes
        self._nodes: dict[str, Any] = {}
        self._sympy: dict[str, Any] = {}
        self._positive: dict[str, bool | None] = {}
        self._sources: dict[str, list[Source]] = {}
        self._constraints: dict[str, list] = {}
        self._by_value: dict[Any, Any] = {}
        self._by_source: dict[str, Any] = {}
        self._counters: dict[str, Iterator[int]] = defaultdict(itertools.count)
        self.pending_fresh_unbacked_symbols: list = []
        self.unbacked_renamings: dict = {}
        self.fake_tensor_cache: dict = {}
        self._ignore_fresh_unbacked = False
        self._runtime_asserts_frozen = False
        self.num_deferred_runtime_asserts = 0

    def __getattr__(self, name: str) -> Any:
        # Settings read as attributes.
        if name in ShapeEnvSettings._fields:
            return getattr(self.settings, name)
        raise AttributeError(f"'ShapeEnv' object has no attribute {name!r}")

    # ---- symbols
    def _new_symbol(
        self,
        prefix: str,
        value: Any,
        source: Source | None,
        low: int | None,
        high: int | None,
        *,
        type_: type = int,
        positive: bool | None = None,
    ) -> Any:
        """A fresh symbol as a node; without a value it is unbacked."""
        name = f"{prefix}{next(self._counters[prefix])}"
        ephemeral = source is not None and source.is_ephemeral()
        node = self._symbol(name, type_, value, low, high, ephemeral)
        self._nodes[name] = node
        self._positive[name] = positive
        self._sources[name] = [] if source is None else [source]
        if log.isEnabledFor(logging.INFO):
            _log_symbol(name, value, source, low, high)
        return node

    def _sympy_symbol(self, name: str) -> "sympy.Symbol":
        """The sympy symbol of a name; always the same object."""
        import sympy

        if name not in self._sympy:
            node = self._nodes[name]
            if node.pytype is float:
                assumptions = {"real": True}
            elif node.pytype is bool:
                assumptions = {"integer": True}
            else:
                assumptions = {"integer": True, "positive": self._positive[name] or None}
            self._sympy[name] = sympy.Symbol(
                name, **{key: value for key, value in assumptions.items() if value is not None}
            )
        return self._sympy[name]

    def _node_of_symbol(self, symbol: "sympy.Symbol") -> Any:
        try:
            return self._nodes[symbol.name]
        except KeyError:
            raise KeyError(f"{symbol} is not a symbol of this ShapeEnv") from None

    def _add_source(self, node: Any, source: Source) -> None:
        """One more source of a symbol; those that a guard can name come first."""
        sources = self._sources[str(node._tree()[1])]
        if source.is_ephemeral():
            sources.append(source)
        else:
            place = sum(not known.is_ephemeral() for known in sources)
            sources.insert(place, source)

    def _backed_node(
        self,
        value: Any,
        source: Source,
        dynamic: DimDynamic,
        constraint: Any,
        positive: bool | None,
        specialize_zero_one: bool,
    ) -> Any:
        """The node of a size: a symbol, or a constant where it is static."""
        if dynamic is DimDynamic.STATIC:
            return self._constant(value)
        if dynamic in (DimDynamic.SIZE_LIKE_UNBACKED, DimDynamic.UNBACKED):
            return self._unbacked_size(value, source)
        if specialize_zero_one and dynamic is not DimDynamic.OBLIVIOUS_SIZE and _infer_unit(value):
            return self._constant(value)
        type_ = type(value) if isinstance(value, (bool, float)) else int
        key = (type_, value)
        shared = dynamic is DimDynamic.DUCK and self.settings.duck_shape
        if shared and key in self._by_value:
            node = self._by_value[key]
            self._add_source(node, source)
        else:
            low = None
            if positive and type_ is int:
                low = 2 if specialize_zero_one and dynamic is not DimDynamic.OBLIVIOUS_SIZE else 0
            prefix = "zf" if type_ is float else "s"
            node = self._new_symbol(
                prefix, value, source, low, None, type_=type_, positive=positive
            )
            if shared:
                self._by_value[key] = node
        self._by_source[source.name()] = node
        if constraint is not None:
            self._note_constraint(node, constraint)
        return node

    def _note_constraint(self, node: Any, constraint: Any) -> None:
        self._constraints.setdefault(str(node._tree()[1]), []).append(constraint)
        if isinstance(constraint, StrictMinMaxConstraint):
            low, high = _ends(constraint.vr)
            self._constrain(node, low, high)

    def _unbacked_size(self, value: Any, source: Source) -> Any:
        node = self._new_symbol("u", None, source, 0, None)
        self._mark_size_like(node)
        self._by_source[source.name()] = node
        return node

    def create_symbol(
        self,
        val: Any,
        source: Source,
        dynamic_dim: DimDynamic = DimDynamic.DUCK,
        constraint_dim: Any = None,
        positive: bool | None = True,
        do_not_specialize_zero_one: bool = False,
        symbolic_context: SymbolicContext | None = None,
    ) -> "sympy.Expr":
        """The sympy symbol for a value of an input, or its number where it is static."""
        specialize = self.settings.specialize_zero_one and not do_not_specialize_zero_one
        node = self._remembered(source, symbolic_context) or self._backed_node(
            val, source, dynamic_dim, constraint_dim, positive, specialize
        )
        self._remember(source, symbolic_context, node)
        return bridge.expr_of_node(node)

    def create_unspecified_symbol(
        self,
        val: Any,
        source: Source,
        dynamic_dim: DimDynamic = DimDynamic.DUCK,
        constraint_dim: Any = None,
        symbolic_context: SymbolicContext | None = None,
    ) -> "sympy.Expr":
        """The symbol of an input number, which may also be 0, 1 or negative."""
        return self.create_symbol(
            val,
            source,
            dynamic_dim,
            constraint_dim,
            positive=None,
            do_not_specialize_zero_one=True,
            symbolic_context=symbolic_context,
        )

    def _remembered(self, source: Source, context: SymbolicContext | None) -> Any:
        if not isinstance(context, StatefulSymbolicContext):
            return None
        cache = context.shape_env_to_source_to_symbol_cache.get(id(self), {})
        return cache.get(source.name())

    def _remember(self, source: Source, context: SymbolicContext | None, node: Any) -> None:
        if isinstance(context, StatefulSymbolicContext):
            cache = context.shape_env_to_source_to_symbol_cache.setdefault(id(self), {})
            cache[source.name()] = node

    # ---- symbols for inputs
    def create_symbolic_sizes_strides_storage_offset(
        self,
        ex: torch.Tensor,
        source: Source,
        *,
        symbolic_context: SymbolicContext | None = None,
    ) -> tuple:
        """Sizes, strides and storage offset for a stand-in of `ex`: symbols, expressions of them,
        or numbers."""
        return self._create_symbolic_sizes_strides_storage_offset(
            tuple(ex.size()),
            tuple(ex.stride()),
            ex.storage_offset(),
            [False] * ex.dim(),
            source,
            symbolic_context=symbolic_context,
        )

    def _create_symbolic_sizes_strides_storage_offset(
        self,
        ex_size: tuple,
        ex_stride: tuple,
        ex_storage_offset: Any,
        is_dim_dynamic: list,
        source: Source,
        *,
        symbolic_context: SymbolicContext | None = None,
    ) -> tuple:
        from torch._dynamo.source import TensorProperty, TensorPropertySource

        context = symbolic_context or self._default_context(is_dim_dynamic)
        specialize = self.settings.specialize_zero_one

        def symbol(value: Any, prop: TensorProperty, index: int | None, dim: tuple) -> Any:
            if isinstance(value, torch.SymInt):
                return value
            place = TensorPropertySource(source, prop, index)
            node = self._remembered(place, context) or self._backed_node(
                value, place, dim[0], dim[1], dim[2], specialize
            )
            self._remember(place, context, node)
            return _number(node)

        sizes = [
            symbol(size, TensorProperty.SIZE, i, (dynamic, constraint, True))
            for i, (size, dynamic, constraint) in enumerate(
                zip(ex_size, context.dynamic_sizes, context.constraint_sizes, strict=True)
            )
        ]
        strides = _infer_strides(ex_size, ex_stride, sizes, context, symbol)
        offset = symbol(
            ex_storage_offset, TensorProperty.STORAGE_OFFSET, None, (DimDynamic.DUCK, None, None)
        )
        return tuple(sizes), tuple(strides), offset

    def _default_context(self, is_dim_dynamic: list) -> StatelessSymbolicContext:
        static = self.settings.assume_static_by_default
        plain = DimDynamic.STATIC if static else DimDynamic.DUCK
        return StatelessSymbolicContext(
            dynamic_sizes=[DimDynamic.DYNAMIC if dynamic else plain for dynamic in is_dim_dynamic]
        )

    def create_symintnode(
        self, sym: Any, *, hint: int | None, source: Source | None = None
    ) -> "int | torch.SymInt":
        """The number of a symbol or an expression."""
        return _number(bridge.node_of_expr(self, sym))

    def create_symfloatnode(
        self, sym: Any, *, hint: float | None, source: Source | None = None
    ) -> "float | torch.SymFloat":
        """The float of a symbol or an expression."""
        node = bridge.node_of_expr(self, sym)
        return _number(node if node.is_float() else node.sym_float())

    def create_input_number(
        self, value: "int | float", source: Source
    ) -> "torch.SymInt | torch.SymFloat":
        """A symbol of its own for a number that a program is given; it may have any value."""
        return _number(self._backed_node(value, source, DimDynamic.DYNAMIC, None, None, False))

    def create_unspecified_symint_and_symbol(
        self, value: int, source: Source, dynamic_dim: DimDynamic
    ) -> "int | torch.SymInt":
        """The number for an input integer."""
        symbol = self.create_unspecified_symbol(value, source, dynamic_dim)
        return self.create_symintnode(symbol, hint=value, source=source)

    def create_symboolnode(self, sym: Any) -> torch.SymBool:
        """The truth value of an expression."""
        return torch.SymBool(bridge.node_of_expr(self, sym))

    # ---- unbacked symbols
    def _fresh_unbacked(self, prefix: str, type_: type, low: Any, high: Any) -> Any:
        node = self._new_symbol(prefix, None, None, low, high, type_=type_)
        if not self._ignore_fresh_unbacked:
            self.pending_fresh_unbacked_symbols.append(_LazySymbol(node))
        return node

    def create_unbacked_symint(self, source: Source | None = None) -> torch.SymInt:
        """An integer that the program will compute."""
        return torch.SymInt(self._fresh_unbacked("u", int, None, None))

    def create_unbacked_symfloat(self, source: Source | None = None) -> torch.SymFloat:
        """A float that the program will compute."""
        return torch.SymFloat(self._fresh_unbacked("zuf", float, None, None))

    def create_unbacked_symbool(self, source: Source | None = None) -> torch.SymBool:
        """A truth value that the program will compute."""
        return torch.SymBool(self._fresh_unbacked("u", int, 0, 1).eq(1))

    @contextlib.contextmanager
    def ignore_fresh_unbacked_symbols(self) -> Iterator[bool]:
        """Inside, new unbacked symbols need not be bound to outputs of the program."""
        before, self._ignore_fresh_unbacked = self._ignore_fresh_unbacked, True
        try:
            yield before
        finally:
            self._ignore_fresh_unbacked = before

    def is_unbacked_symint(self, symbol: Any) -> bool:
        """Whether a symbol has no value in the traced run."""
        return not self._state(bridge.node_of_expr(self, symbol))[0]

    def set_unbacked_var_to_val(self, symbol: Any, value: Any) -> None:
        """The value of an unbacked symbol where real tensors are traced along."""
        self._set_hint(bridge.node_of_expr(self, symbol), value)

    def constrain_symbol_range(self, symbol: Any, compiler_min: int, compiler_max: int) -> None:
        """States that a symbol lies in a range."""
        self._constrain(bridge.node_of_expr(self, symbol), compiler_min, compiler_max)

    # ---- expressions
    def replace(self, expr: Any) -> "sympy.Expr":
        """An expression with the symbols replaced that are known to equal others."""
        return bridge.expr_of_node(bridge.node_of_expr(self, expr)._shown())

    def simplify(self, expr: Any, size_oblivious: bool = False) -> "sympy.Expr":
        """An expression with everything used that is known."""
        return bridge.expr_of_node(bridge.node_of_expr(self, expr)._simplified())

    def has_hint(self, expr: Any) -> bool:
        """Whether an expression has a value in the traced run."""
        return bridge.node_of_expr(self, expr).has_hint()

    def size_hint(self, expr: Any, *, allow_none: bool = False) -> Any:
        """The value of an expression in the traced run."""
        node = bridge.node_of_expr(self, expr)
        if node.hint is None and not allow_none:
            node.guard_int()  # raises the error of data-dependent values
        return node.hint

    def bound_sympy(self, expr: Any, size_oblivious: bool = False) -> Any:
        """The range of an expression."""
        return self._value_range(bridge.node_of_expr(self, expr))

    def _value_range(self, node: Any) -> Any:
        from torch.utils._sympy.numbers import int_oo
        from torch.utils._sympy.value_ranges import ValueRanges

        low, high = self._range(node)
        return ValueRanges(-int_oo if low is None else low, int_oo if high is None else high)

    # ---- decisions
    def evaluate_expr(
        self,
        orig_expr: Any,
        hint: Any = None,
        fx_node: Any = None,
        size_oblivious: bool = False,
        fallback_value: bool | None = None,
        *,
        forcing_spec: bool = False,
    ) -> Any:
        """The value of an expression, taken from what is known or fixed by a guard."""
        node = bridge.node_of_expr(self, orig_expr)
        if not node.is_bool():
            return node.guard_float() if node.is_float() else node.guard_int()
        if fallback_value is not None:
            return node.guard_or_true() if fallback_value else node.guard_or_false()
        return node.guard_size_oblivious() if size_oblivious else node.guard_bool()

    def evaluate_sym_node(
        self, sym_node: Any, size_oblivious: bool = False, fallback_value: bool | None = None
    ) -> Any:
        """evaluate_expr of a node."""
        return self.evaluate_expr(
            sym_node, size_oblivious=size_oblivious, fallback_value=fallback_value
        )

    def _maybe_evaluate_static(
        self, expr: Any, *, unbacked_only: bool = False, size_oblivious: bool = False, **_: Any
    ) -> Any:
        """The value of an expression where it is the same for all values of the symbols."""
        import sympy

        node = bridge.node_of_expr(self, expr)
        if node.is_bool():
            known = node._maybe_known(size_oblivious)
            return None if known is None else sympy.sympify(known)
        simple = node._simplified()
        return bridge.expr_of_node(simple) if simple.is_constant() else None

    def defer_runtime_assert(self, orig_expr: Any, msg: str, fx_node: Any = None) -> bool:
        """States a condition that the program will check when it runs."""
        self.num_deferred_runtime_asserts += 1
        return self._defer(bridge.node_of_expr(self, orig_expr), msg)

    guard_or_defer_runtime_assert = defer_runtime_assert

    def freeze(self) -> None:
        """From now on decisions add no guards."""
        self._frozen = True

    @property
    def frozen(self) -> bool:
        """Whether decisions add guards no more."""
        return self._frozen

    def freeze_runtime_asserts(self) -> None:
        """From now on nothing is left to be checked at run time."""
        self._runtime_asserts_frozen = True

    @contextlib.contextmanager
    def suppress_guards(self) -> Iterator[None]:
        """Inside, decisions add no guards."""
        before, self._frozen = self._frozen, True
        try:
            yield
        finally:
            self._frozen = before

    # ---- the state as sympy objects
    @property
    def guards(self) -> list[ShapeGuard]:
        """The conditions under which the trace is valid."""
        return [
            ShapeGuard(bridge.expr_of_node(node), origin, oblivious)
            for node, origin, oblivious in self._guards()
        ]

    @property
    def deferred_runtime_asserts(self) -> dict:
        """{newest unbacked symbol, or None: [RuntimeAssert]}"""
        return {
            None if symbol is None else bridge.expr_of_node(symbol): [
                RuntimeAssert(bridge.expr_of_node(node), message) for node, message in rows
            ]
            for symbol, rows in self._asserts()
        }

    @property
    def replacements(self) -> dict:
        """{symbol: what it equals}"""
        return {
            bridge.expr_of_node(symbol): bridge.expr_of_node(by)
            for symbol, by in self._shown_replacements()
        }

    @property
    def var_to_val(self) -> dict:
        """{backed symbol: its value in the traced run}"""
        import sympy

        return {
            self._sympy_symbol(name): sympy.sympify(node.hint)
            for name, node in self._nodes.items()
            if self._state(node)[0]
        }

    backed_var_to_val = var_to_val

    @property
    def unbacked_var_to_val(self) -> dict:
        """{unbacked symbol: the value that was told of it}"""
        import sympy

        return {
            self._sympy_symbol(name): sympy.sympify(node.hint)
            for name, node in self._nodes.items()
            if not self._state(node)[0] and node.hint is not None
        }

    @property
    def var_to_range(self) -> dict:
        """{symbol: its range}"""
        return {
            self._sympy_symbol(name): self._value_range(node)
            for name, node in self._nodes.items()
            if node.is_int()
        }

    @property
    def var_to_sources(self) -> dict:
        """{symbol: its sources}"""
        return {
            self._sympy_symbol(name): sources for name, sources in self._sources.items() if sources
        }

    @property
    def source_to_var(self) -> dict:
        """{name of a source: symbol}"""
        return {name: bridge.expr_of_node(node) for name, node in self._by_source.items()}

    source_to_symbol = source_to_var

    @property
    def size_like(self) -> set:
        """The unbacked symbols that are sizes."""
        return {
            self._sympy_symbol(name) for name, node in self._nodes.items() if self._state(node)[1]
        }

    @property
    def unbacked_symint_counter(self) -> int:
        """How many unbacked integers were made."""
        return sum(name.startswith("u") for name in self._nodes)

    @property
    def _version_counter(self) -> int:
        return self._facts_version

    def get_axioms(self, symbols: Any = None, compute_hint: bool = False) -> tuple:
        """The runtime checks that hold, in the symbols asked for."""
        asserts = [a.expr for rows in self.deferred_runtime_asserts.values() for a in rows]
        if symbols is not None:
            wanted = set(symbols)
            asserts = [expr for expr in asserts if expr.free_symbols & wanted]
        return tuple(asserts)

    # ---- guards as text and as checks
    def produce_guards(self, *args: Any, **kwargs: Any) -> list[str]:
        """The guards as Python expressions over the sources of the inputs."""
        return self.produce_guards_verbose(*args, **kwargs)[0]

    def produce_guards_verbose(
        self,
        placeholders: list,
        sources: list,
        source_ref: Any = lambda source: source.name(),
        *,
        input_contexts: list | None = None,
        equalities_inputs: Any = None,
        _simplified: bool = False,
        ignore_static: bool = True,
        langs: tuple = ("python",),
    ) -> list[list[str]]:
        """As produce_guards, one list for each language."""
        if log.isEnabledFor(logging.INFO):
            for node, origin, _ in self._guards():
                log.info("eval %s [guard added] (%s)", node, origin)
        producer = GuardProducer(self, source_ref)
        lines = producer.produce(
            placeholders, sources, input_contexts, ignore_static, simplified=_simplified
        )
        log.debug("produce_guards: %s", lines)
        return [lines for _ in langs]

    def produce_guards_expression(
        self, placeholders: list, *, guards: list | None = None, ignore_static: bool = True
    ) -> str | None:
        """One expression over `L['t0']`, `L['t1']`, ... that says whether arguments keep the
        guards."""
        from torch._dynamo.source import LocalSource

        sources = [LocalSource(f"t{i}") for i in range(len(placeholders))]
        lines = GuardProducer(self, lambda source: source.name()).produce(
            placeholders, sources, None, ignore_static
        )
        return " and ".join(f"({line})" for line in lines) if lines else None

    def evaluate_guards_expression(self, code: str, args: Any) -> bool:
        """Whether arguments keep guards that produce_guards_expression wrote."""
        values = {f"t{i}": arg for i, arg in enumerate(args)}
        scope = {"L": values, "math": math, "torch": torch, "operator": operator}
        return bool(eval(code, scope))

    def evaluate_guards_for_args(
        self, placeholders: list, args: Any, *, ignore_static: bool = True
    ) -> bool:
        """Whether the trace is valid for these arguments."""
        code = self.produce_guards_expression(placeholders, ignore_static=ignore_static)
        return self.evaluate_guards_expression(code, args) if code else True

    def bind_symbols(self, placeholders: list, args: Any) -> dict:
        """{symbol: its value} for arguments in place of the stand-ins that were traced."""
        return GuardProducer(self, lambda source: source.name()).bind(placeholders, args)

    def get_pruned_guards(self, symints: Any) -> list[ShapeGuard]:
        """The guards that mention no symbols but those of `symints`."""
        allowed = {s for symint in symints for s in map(str, symint.node._symbols())}
        return [
            guard
            for guard, (node, _, _) in zip(self.guards, self._guards(), strict=True)
            if {str(symbol) for symbol in node._symbols()} <= allowed
        ]

    def get_nontrivial_guards(self) -> list:
        """The guards that are not known otherwise, simplified."""
        return [self.simplify(guard.expr) for guard in self.guards]

    def format_guards(self, verbose: bool = False) -> str:
        """One line to a guard."""
        return "\n".join(
            f" - {node}{f' at {origin}' if verbose else ''}" for node, origin, _ in self._guards()
        )

    def check_equal(self, other: "ShapeEnv") -> None:
        """Raises where two environments differ in symbols, guards or replacements."""
        for name in ("_sources", "settings"):
            if getattr(self, name) != getattr(other, name):
                raise AssertionError(f"shape environments differ in {name}")
        if self.format_guards() != other.format_guards():
            raise AssertionError("shape environments differ in their guards")

    def cleanup(self) -> None:
        """Drops what only the trace needed."""
        self.tracked_fakes = None

    def __deepcopy__(self, memo: dict) -> "ShapeEnv":
        return _replayed(self, memo)


class _LazySymbol:
    """A pending unbacked symbol; compares as its sympy symbol."""

    def __init__(self, node: Any) -> None:
        self.node = node

    @property
    def expr(self) -> "sympy.Symbol":
        """The sympy symbol."""
        return bridge.expr_of_node(self.node)

    def __eq__(self, other: object) -> bool:
        return self.node is other.node if isinstance(other, _LazySymbol) else self.expr == other

    def __hash__(self) -> int:
        return hash(self.expr)

    def __repr__(self) -> str:
        return str(self.node)


def _ends(vr: Any) -> tuple:
    """The ends of a range as numbers, None where it is open."""

    def end(value: Any) -> int | None:
        return None if "oo" in str(value) else int(value)

    return end(vr.lower), end(vr.upper)


def _number(node: Any) -> Any:
    """The number of a node; a plain one where the node is a constant."""
    if node.is_constant():
        for ask in (node.maybe_as_int, node.maybe_as_float, node.maybe_as_bool):
            value = ask()
            if value is not None:
                return value
    cls = {int: torch.SymInt, float: torch.SymFloat, bool: torch.SymBool}[node.pytype]
    return cls(node)


def _infer_strides(
    ex_size: tuple, ex_stride: tuple, sizes: list, context: Any, symbol: Any
) -> list:
    """Strides as products of sizes where one fits, found from the innermost dimension outwards."""
    from torch._dynamo.source import TensorProperty

    strides: list = [None] * len(ex_stride)
    products: dict = {1: 1}
    order = sorted(range(len(ex_stride)), key=lambda i: (_plain(ex_stride[i]), -i))
    for i in order:
        value, dynamic = ex_stride[i], context.dynamic_strides[i]
        constraint = context.constraint_strides[i]
        if isinstance(value, torch.SymInt):
            strides[i] = value
        elif dynamic is DimDynamic.INFER_STRIDE and value in products:
            strides[i] = products[value]
        else:
            if dynamic is DimDynamic.INFER_STRIDE:
                dynamic = DimDynamic.DYNAMIC
            strides[i] = symbol(value, TensorProperty.STRIDE, i, (dynamic, constraint, None))
        products.setdefault(_plain(ex_size[i]) * _plain(value), sizes[i] * strides[i])
    return strides


def _plain(value: Any) -> int:
    return value.node.hint if isinstance(value, torch.SymInt) else value


def _replayed(env: ShapeEnv, memo: dict) -> ShapeEnv:
    """A copy: the same symbols made in the same order, then the same guards."""
    copy = type(env)(**env.settings._asdict())
    memo[id(env)] = copy
    for name, node in env._nodes.items():
        prefix = name.rstrip("0123456789")
        low, high = env._range(node) if node.is_int() else (None, None)
        value = node.hint if env._state(node)[0] else None
        source = env._sources[name][0] if env._sources[name] else None
        copied = copy._new_symbol(
            prefix, value, source, low, high, type_=node.pytype, positive=env._positive[name]
        )
        copy._sources[name] = list(env._sources[name])
        if env._state(node)[1]:
            copy._mark_size_like(copied)
    for node, origin, _ in env._guards():
        copy._add_guard(_moved(node, copy), origin)
    for _, rows in env._asserts():
        for node, message in rows:
            copy._defer(_moved(node, copy), message)
    return copy


def _moved(node: Any, env: ShapeEnv) -> Any:
    return bridge.node_of_expr(env, bridge.expr_of_node(node))
