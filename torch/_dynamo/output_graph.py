"""The graph that a trace builds: nodes with fake values, inputs with their sources, guards as
records, and the compiled function that the backend makes of it."""

from __future__ import annotations

import collections
import contextlib
import itertools
import re
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import torch
import torch.fx
from torch._C._dynamo.eval_frame import DisabledFunction
from torch._dynamo import compile_log, config, decorators, trace_rules
from torch._dynamo.exc import (
    BackendCompilerFailed,
    TorchRuntimeError,
    raise_observed,
    unimplemented,
)
from torch._dynamo.guards import GuardRecord
from torch._dynamo.side_effects import SideEffects
from torch._dynamo.source import AttrSource, GlobalSource
from torch._dynamo.utils import dynamo_timed
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.ctx_manager import IN_GRAPH, leaving
from torch._dynamo.variables.function_modes import takes_over, without_modes
from torch._dynamo.variables.functions import CellVariable
from torch._dynamo.variables.lists import (
    ListVariable,
    NamedTupleVariable,
    SizeVariable,
    TupleVariable,
)
from torch._dynamo.variables.misc import UnknownVariable
from torch._dynamo.variables.places import note_places
from torch._dynamo.variables.tensor import SymNodeVariable, TensorVariable
from torch._dynamo.variables.user_defined import UserDefinedObjectVariable, instance_dict
from torch._functorch import pyfunctorch
from torch._guards import TracingContext
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental import symbolic_shapes
from torch.fx.node import map_aggregate
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame
    from torch._dynamo.translate import Options
    from torch._dynamo.variables.generators import GeneratorVariable
    from torch._dynamo.variables.random_numbers import EarlyValueVariable
    from torch._dynamo.written_memory import SharedMemory
    from torch._guards import Source

_DATA_DEPENDENT = (
    fake_tensor.DataDependentOutputException,
    fake_tensor.DynamicOutputShapeException,
    symbolic_shapes.GuardOnDataDependentSymNode,
)
_CANNOT_FAKE = (
    *_DATA_DEPENDENT,
    fake_tensor.UnsupportedOperatorException,
    fake_tensor.UnsupportedFakeTensorException,
    NotImplementedError,
)
# Kinds of guards of which a source may have several.
_MANY_ON_A_SOURCE = frozenset(
    {"NOT_PRESENT_IN_GENERIC_DICT", "PRESENT_IN_GENERIC_DICT", "NO_ATTRIBUTE"}
)
_compiled_names = itertools.count(1)


class GraphInput(NamedTuple):
    """An input of the graph: its placeholder, its source, a real example. `made` is a value that
    has no source and that the code makes before the graph."""

    node: torch.fx.Node
    source: Source | None
    example: object
    made: VariableTracker | None = None


class OpaqueVariable(VariableTracker):
    """A value of C code that calls of the graph hand to each other."""

    __slots__ = ("node", "value")

    def __init__(self, node: torch.fx.Node, value: object) -> None:
        super().__init__(None)
        self.node = node
        self.value = value

    def python_type(self) -> type:
        return type(self.value)

    def as_proxy(self) -> object:
        return self.node


class OutputGraph:
    """The state of one trace, shared by all its frames."""

    def __init__(self, root_globals: dict[str, object], options: Options) -> None:
        self.root_globals = root_globals
        # Names that were added to the globals for objects of the program.
        self.aliases: set[str] = set()
        self.options = options
        self.graph = self.root = torch.fx.Graph()
        # Graphs of functions that are being traced for an operator, with what they lifted.
        self.scopes: list[tuple[torch.fx.Graph, dict[torch.fx.Node, torch.fx.Node]]] = []
        self.fake_mode = options.fake_mode or FakeTensorMode(
            shape_env=symbolic_shapes.ShapeEnv(), export=options.export
        )
        if self.fake_mode.shape_env is None:
            self.fake_mode.shape_env = symbolic_shapes.ShapeEnv()
        self.shape_env = self.fake_mode.shape_env
        self.fake_mode.allow_scalar_outputs = config.capture_scalar_outputs
        self.tensor_sources: list[Source] = []
        self.tracing_context = TracingContext(self.fake_mode)
        self.guards: dict[tuple, GuardRecord] = {}
        self.inputs: list[GraphInput] = []
        self.side_effects = SideEffects()
        # Trackers of existing objects by identity, and what must live as long as the trace.
        self.known: dict[int, VariableTracker] = {}
        # Addresses of the dictionaries of objects of the program that are known.
        self.own_dicts: set[int] = set()
        self.keep: list[object] = []
        self._cells: dict[int, CellVariable] = {}
        # Trackers of existing objects without a source.
        self.orphans: dict[int, VariableTracker] = {}
        # The objects of the program's classes whose builtin containers these trackers are.
        self.holders: dict[int, UserDefinedObjectVariable] = {}
        self.symbol_nodes: dict[str, torch.fx.Node] = {}
        self.symbol_inputs: dict[Source, VariableTracker] = {}
        # Tensors and numbers with symbols, for the guards on shapes.
        self.body_start = 0
        # Where a call began whose effects are of interest; values born later are its own.
        self.call_start = 0
        self.shape_sources: list[tuple[object, Source, object]] = []
        # Context managers that are open, the outermost first.
        self.contexts: list[VariableTracker] = []
        # Settings that the program changed without a context: they stay when something fails.
        self.lasting_modes: set[VariableTracker] = set()
        # Where the trace found a class: objects it makes read its attributes there.
        self.class_sources: dict[type, Source] = {}
        # What the trace found in classes: names and values.
        self.class_reads: dict[type, dict[str, object]] = {}
        # Names that were builtins, for want of a global variable.
        self.builtins_read: set[str] = set()
        # Generators that the traced program made.
        self.generators: list[GeneratorVariable] = []
        # Function modes: those open now, and those open before.
        self.function_modes: list[VariableTracker] = []
        self.open_modes: list[VariableTracker] = []
        # Whether there was a mode or a class that takes over calls; how often that was disabled.
        self.overridable = False
        self.overrides_off = 0
        # Graphs of functions: how many have a name, and those of marked regions.
        self.body_counts: collections.Counter[str] = collections.Counter()
        self.regions: dict[tuple, tuple[torch.fx.Node, str]] = {}
        self.has_break = False
        # Code that was traced into, and functions that go on after a break: place, depth, locals.
        self.codes: set[types.CodeType] = set()
        self.resumes: dict[types.CodeType, list] = {}
        # Whether code of the program looked at the trace.
        self.is_watched = False
        # Conditions on sizes as texts over the sources of tensors and numbers.
        self.shape_texts: tuple[list[str], list[Source]] = ([], [])
        self.trace_calls = compile_log.is_on("trace_call")
        self.watches_steps = compile_log.watches_steps()
        # Objects of the running program that must not be one: lists of their sources.
        self.distinct: list[list[Source]] = []
        # Tensors that must not share memory, since the graph writes to some; those that did.
        self.apart: list[list[Source]] = []
        self.shared_memory: SharedMemory | None = None
        # Classes of objects of which the trace asked whether two are the same.
        self.compared: set[type] = set()
        self.grad_at_start = torch.is_grad_enabled()
        # The frame's parameters and cells, for those who look at the guards.
        self.values: dict[str, object] = {}
        self.attrs: dict[str, object] = {}
        # The modules whose forward is running: their place in the program and their class.
        self.module_stack: dict[str, tuple[str, type | str]] = {}
        self.module_calls: dict[str, int] = {}
        # The operators whose functions are being traced.
        self.operators: list[tuple[str, object]] = []
        self.graph_module: torch.fx.GraphModule | None = None
        self.compiled_name = ""
        self.current_frame: Frame | None = None
        # The transforms that the program runs under, and whether it begins some itself.
        self.transforms = pyfunctorch.current_state()
        # Calls that the code makes before the graph, in order: numbers that are drawn.
        self.early_calls: list[EarlyValueVariable] = []
        # Whether a graph break is an error where the trace is now.
        self.error_on_break = decorators.breaks_are_errors()

    def uses_transforms(self) -> bool:
        """Whether the trace depends on the transforms that are running: it is under some, or begins
        some, whose levels are numbered from there."""
        return bool(self.transforms) or any(
            getattr(node.target, "__module__", None) == "torch._C._functorch"
            for node in self.root.nodes
        )

    # ---- guards and existing objects

    def guard(self, source: Source | None, kind: str, value: object = None) -> None:
        """Notes a condition on the running program."""
        mark = value if kind in _MANY_ON_A_SOURCE else None
        key = (source, kind, mark)
        if key not in self.guards:
            self.guards[key] = GuardRecord(source, kind, value)

    def alias(self, name: str, value: object) -> GlobalSource:
        """A global name for an object to which no other leads."""
        self.root_globals[name] = value
        self.aliases.add(name)
        return GlobalSource(name)

    def cell(self, real: types.CellType, name: str, source: Source | None) -> CellVariable:
        """The tracker of an existing cell."""
        found = self._cells.get(id(real))
        if found is None:
            found = self._cells[id(real)] = CellVariable(name, None, real, source)
            self.keep.append(real)
        elif source is not None and found.source is not None and source != found.source:
            # Code that was traced for one variable is wrong where there are two.
            self.guard(source, "OBJECT_ALIASING", found.source)
        return found

    def note_orphan(self, vt: VariableTracker) -> VariableTracker:
        """A value of the running program to which no source may lead: it must not change."""
        if vt.source is None and vt.is_mutable():
            self.orphans[id(vt)] = vt
        return vt

    def distinct_objects(self) -> list[list[Source]]:
        """Sources of objects of a class of which the trace changes one or asks whether two are the
        same: the code that was traced for different objects is wrong where they are one."""
        changed = {id(vt) for vt in self.side_effects.changed.values()}
        by_class: dict[type, list[VariableTracker]] = {}
        for value in self.keep:
            vt = self.known.get(id(value))
            if vt is not None and vt.source is not None:
                by_class.setdefault(type(value), []).append(vt)
        groups = []
        for cls, found in by_class.items():
            sources = list(dict.fromkeys(vt.source for vt in found))
            matters = cls in self.compared or any(id(vt) in changed for vt in found)
            if matters:
                groups.append(sources)
        cells = [cell for cell in self._cells.values() if cell.source is not None]
        if any(cell.changed for cell in cells):
            groups.append(list(dict.fromkeys(cell.source for cell in cells)))
        groups.append(self._dictionaries_beside(by_class.get(dict, []), changed))
        return [group for group in groups if len(group) > 1]

    def note_own_dict(self, own: dict[str, object]) -> None:
        """The trace follows what an object has as its __dict__ by the object: from now on it is no
        value of its own."""
        if id(own) in self.known:
            self.refuse_own_dict(own)
        self.own_dicts.add(id(own))

    def check_own_dict(self, own: dict[str, object]) -> None:
        """Breaks where the trace wrote to a dictionary and asks its object for an attribute."""
        known = self.known.get(id(own))
        if known is not None and known.changed:
            self.refuse_own_dict(own)

    def refuse_own_dict(self, own: dict[str, object]) -> NoReturn:
        """Breaks where an object and its dictionary are both there."""
        unimplemented(
            "dictionary of an object",
            f"{list(own)[:8]}",
            "an object and its __dict__ came as two values, so that a change of one is a change "
            "of the other",
        )

    def _dictionaries_beside(self, dicts: list[VariableTracker], changed: set[int]) -> list[Source]:
        """Sources of dictionaries, and of those that objects have as their own, where some of them
        changes. Modules are left out, which are many and whose tables nobody passes beside them."""
        if not dicts:
            return []
        objects = [
            self.known.get(id(value))
            for value in self.keep
            if id(instance_dict(value)) in self.own_dicts and not isinstance(value, torch.nn.Module)
        ]
        owners = [vt for vt in objects if vt is not None and vt.source is not None]
        if not owners or not any(id(vt) in changed for vt in (*dicts, *owners)):
            return []
        own = [AttrSource(vt.source, "__dict__") for vt in owners]
        return list(dict.fromkeys([*(vt.source for vt in dicts), *own]))

    # ---- nodes

    def add_input(self, source: Source, example: object, fake: object) -> torch.fx.Node:
        """A placeholder for a value of the running program."""
        name = re.sub(r"^C\[(.*?)\]\.cell_contents", r"L[\1]", source.name())
        name = re.sub(r"[^a-zA-Z0-9]+", "_", name)
        name = re.sub(r"_+", "_", name)
        if name[:1].isdigit():
            name = f"G_{name}"
        with self.root.inserting_before(self._first_operation()):
            node = self.root.placeholder(name)
        node.meta["example_value"] = fake
        node.meta["grapharg_source"] = source
        node.meta["nn_module_stack"] = self.module_stack
        self.inputs.append(GraphInput(node, source, example))
        return node

    def made_input(
        self, vt: VariableTracker, example: object = None, fake: object = None
    ) -> torch.fx.Node:
        """A placeholder for an object that the code makes before the graph, such as a hook."""
        for item in self.inputs:
            if item.made is vt:
                return item.node
        with self.root.inserting_before(self._first_operation()):
            node = self.root.placeholder(f"made_{len(self.inputs)}")
        node.meta["example_value"] = fake
        self.inputs.append(GraphInput(node, None, example, vt))
        return node

    def add_symbol(
        self, name: str, source: Source, number: int, symbol: torch.SymInt
    ) -> torch.fx.Node:
        """A placeholder for a symbol that stands for a size."""
        with self.root.inserting_before(self._first_operation()):
            node = self.root.placeholder(name, type_expr=torch.SymInt)
        node.meta["example_value"] = symbol
        self.inputs.append(GraphInput(node, source, number))
        return node

    def _first_operation(self) -> torch.fx.Node:
        for node in self.root.nodes:
            if node.op != "placeholder":
                return node
        return self.root._root

    def lift(self, node: object) -> object:
        """A node as the current graph sees it: one of an outer graph becomes an input."""
        if not isinstance(node, torch.fx.Node) or node.graph is self.graph:
            return node
        return self._lift(node, len(self.scopes) - 1)

    def _lift(self, node: torch.fx.Node, level: int) -> torch.fx.Node:
        graph, lifted = self.scopes[level]
        found = lifted.get(node)
        if found is not None or node.graph is graph:
            return found or node
        if level and node.graph is not self._graph_below(level):
            outer = self._lift(node, level - 1)
        else:
            outer = node
        found = lifted.get(outer)
        if found is None:
            first = next((n for n in graph.nodes if n.op != "placeholder"), graph._root)
            with graph.inserting_before(first):
                found = graph.placeholder(node.name)
            found.meta["example_value"] = node.meta["example_value"]
            lifted[outer] = found
        return found

    def _graph_below(self, level: int) -> torch.fx.Graph:
        return self.scopes[level - 1][0] if level else self.root

    def lift_all(self, value: object) -> object:
        """Arguments of a node with every node lifted."""
        return map_aggregate(value, self.lift) if self.scopes else value

    def call(self, tx: Frame, target: Callable, args: Args, kwargs: Kwargs) -> VariableTracker:
        """A call of a function in the graph."""
        taken = takes_over(tx, target, args, kwargs) if self.overridable else None
        if taken is not None:
            return taken
        note_places(tx, target, args)
        return self.node(tx, "call_function", target, args, kwargs)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        """A call of a method of a tensor in the graph."""
        taken = takes_over(tx, name, args, kwargs) if self.overridable else None
        if taken is not None:
            return taken
        note_places(tx, name, args)
        return self.node(tx, "call_method", name, args, kwargs)

    def call_effect(
        self, tx: Frame, target: Callable, args: Args, kwargs: Kwargs
    ) -> VariableTracker:
        """A call that is kept although it returns nothing."""
        return self.node(tx, "call_function", target, args, kwargs, True)

    def node(
        self,
        tx: Frame,
        op: str,
        target: Callable | str,
        args: Args,
        kwargs: Kwargs,
        effect: bool = False,
    ) -> VariableTracker:
        """A node and its value."""
        node_args = tuple([a.as_proxy() for a in args])
        node_kwargs = {k: v.as_proxy() for k, v in kwargs.items()}
        result = self.run_fake(tx, op, target, node_args, node_kwargs)
        if not _in_graph(result):
            if not effect and not trace_rules.has_effect(target, result):
                return VariableTracker.build(tx, result)
        if self.scopes:
            node_args, node_kwargs = self.lift_all(node_args), self.lift_all(node_kwargs)
        made = self.graph.create_node(op, target, node_args, node_kwargs)
        if self.trace_calls:
            compile_log.traced_call(made.name, tx)
        made.meta["example_value"] = result
        if self.shape_env.pending_fresh_unbacked_symbols:
            self._bind_new_symbols(made, result)
        self.describe(tx, made)
        if isinstance(result, torch.Tensor):
            for arg in (*args, *kwargs.values()):
                if (
                    type(arg) is TensorVariable
                    and arg.fake is result
                    and arg.node.graph is self.graph
                ):
                    arg.node, arg.named = made, False
                    return arg
        return self.wrap_node(tx, made, result)

    def _bind_new_symbols(self, node: torch.fx.Node, result: object) -> None:
        """Says on a node which numbers it read from data. Those that it made on the way and does
        not return are no concern of whoever traces the graph again."""
        from torch.fx.experimental.symbolic_shapes import (
            PendingUnbackedSymbolNotFound,
            compute_unbacked_bindings,
        )

        with contextlib.suppress(PendingUnbackedSymbolNotFound):
            bindings = compute_unbacked_bindings(self.shape_env, result)
            if bindings:
                node.meta["unbacked_bindings"] = bindings

    def enter_module(self, name: str, cls: type) -> None:
        """The forward of a module begins. A compiled graph names the class: to refer to it would
        keep it alive, since the graph hangs on the code of its own forward."""
        kind = cls if self.options.export else f"{cls.__module__}.{cls.__qualname__}"
        key = re.sub(r"\W+", "_", name)
        count = self.module_calls[name] = self.module_calls.get(name, 0) + 1
        if self.options.export and count > 1:
            key = f"{key}@{count - 1}"
        self.module_stack = {**self.module_stack, key: (name, kind)}

    def describe(self, tx: Frame, node: torch.fx.Node) -> None:
        """Says in the node where in the program it comes from."""
        node.meta["stack_trace"] = tx.user_stack_text()
        node.meta["nn_module_stack"] = self.module_stack
        # What a layer of torch.nn calls comes from the layer, as far as its user can tell.
        _, layer = next(reversed(self.module_stack.values()), (None, None))
        own = isinstance(layer, type) and layer.__module__.startswith("torch.nn.")
        node.meta["source_fn_stack"] = [*self.operators, (node.name, layer if own else node.target)]

    def run_fake(
        self,
        tx: Frame,
        op: str,
        target: Callable | str,
        node_args: tuple,
        node_kwargs: dict[str, object],
    ) -> object:
        """What the call gives on fake tensors."""
        args, kwargs = map_aggregate((node_args, node_kwargs), _example)
        args, kwargs = _thawed(args), _thawed(kwargs)
        try:
            with self.fake_mode, torch._C.DisableTorchFunctionSubclass():
                if op == "call_method":
                    return getattr(args[0], target)(*args[1:], **kwargs)
                return target(*args, **kwargs)
        except _CANNOT_FAKE as error:
            self._refuse(target, error)
        except TorchRuntimeError:
            raise
        except Exception as error:
            if not any(isinstance(a, torch.Tensor) for a in (*args, *kwargs.values())) and (
                isinstance(error, ArithmeticError)
            ):
                raise_observed(tx, error)
            if tx.catches_exceptions() or not (self.options.fullgraph or self.error_on_break):
                # Python runs the call and raises its error.
                self._refuse(target, error)
            raise TorchRuntimeError(
                f"Dynamo failed to run FX node with fake tensors: {op} "
                f"{_shown(target)}(*{args}, **{kwargs}): got {type(error).__name__}"
                f"({str(error)!r})"
            ).with_traceback(error.__traceback__) from None

    def _refuse(self, target: Callable | str, error: Exception) -> None:
        if isinstance(error, fake_tensor.DataDependentOutputException):
            unimplemented(
                "Unsupported Tensor.item() call with capture_scalar_outputs=False"
                if "item" in _shown(target)
                else "Data dependent operator",
                str(error.func),
                f"Operator `{error.func}` has a non-Tensor output whose value is dependent on "
                "the data of Tensor inputs.",
                (
                    "Consider setting `torch._dynamo.config.capture_scalar_outputs = True` or env "
                    "var `TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS=1` to include these operations in "
                    "the captured graph.",
                ),
            )
        if isinstance(error, fake_tensor.DynamicOutputShapeException):
            unimplemented(
                "Dynamic shape operator",
                str(error.func),
                f"Operator `{error.func}`'s output shape depends on input Tensor data.",
                (
                    "Enable tracing of dynamic shape operators with "
                    "`torch._dynamo.config.capture_dynamic_output_shape_ops = True`",
                ),
            )
        unimplemented(
            "operator without fake kernel", _shown(target), f"{type(error).__name__}: {error}"
        )

    def wrap_node(self, tx: Frame, node: torch.fx.Node, value: object) -> VariableTracker:
        """The tracker of a value that a node computes."""
        if isinstance(value, torch.Tensor):
            made = TensorVariable(node, value)
            if is_traceable_wrapper_subclass(value):
                made.cls = type(value)
            return made
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return SymNodeVariable.create(node, value)
        if isinstance(value, tuple | list):
            items = [self._item(tx, node, i, item) for i, item in enumerate(value)]
            if isinstance(value, torch.Size):
                return SizeVariable(items)
            if type(value) is tuple:
                return TupleVariable(items)
            if type(value) is list:
                return ListVariable(items)
            return NamedTupleVariable(items, type(value))
        if value is None or isinstance(value, int | float | str | torch.dtype | torch.device):
            return ConstantVariable(value)
        if type(value).__name__ == "PyCapsule":
            return OpaqueVariable(node, value)
        unimplemented(
            "result of an operator",
            f"{node.target}: {type(value)}",
            f"a value of type {type(value).__name__} cannot leave the graph",
        )

    def _item(self, tx: Frame, node: torch.fx.Node, index: int, item: object) -> VariableTracker:
        import operator

        if not _in_graph(item):
            return VariableTracker.build(tx, item)
        part = self.graph.create_node("call_function", operator.getitem, (node, index), {})
        part.meta["example_value"] = item
        self.describe(tx, part)
        return self.wrap_node(tx, part, item)

    def object_node(self, tx: Frame, cls: type, parts: Kwargs) -> OpaqueVariable:
        """An object that the graph makes of its parts, for functions that are called in it."""
        given = self.lift_all({name: vt.as_proxy() for name, vt in parts.items()})
        made = self.graph.create_node("call_function", cls, (), given)
        made.meta["example_value"] = cls(**map_aggregate(given, _example))
        self.describe(tx, made)
        return OpaqueVariable(made, made.meta["example_value"])

    def graph_value(self, vt: VariableTracker) -> torch.fx.Node | None:
        """The node that computes a value, where the graph does."""
        if isinstance(vt, TensorVariable | SymNodeVariable):
            return vt.node
        return None

    def real_value(self, node: torch.fx.Node) -> object:
        """What a node would compute from the real inputs of this run."""
        examples = {item.node: item.example for item in self.inputs}
        known: dict[torch.fx.Node, object] = {}
        with torch.no_grad():
            for step in self.graph.nodes:
                if step.op == "placeholder":
                    example = examples[step]
                    known[step] = example.clone() if isinstance(example, torch.Tensor) else example
                elif step.op == "get_attr":
                    known[step] = self.attrs[step.target]
                else:
                    args, kwargs = map_aggregate(
                        (step.args, step.kwargs), lambda x: known.get(x, x)
                    )
                    if step.op == "call_method":
                        known[step] = getattr(args[0], step.target)(*args[1:], **kwargs)
                    else:
                        known[step] = step.target(*args, **kwargs)
                if step is node:
                    return known[step]
        raise AssertionError(f"{node} is not in the graph")

    def attribute_node(self, name: str, value: object) -> torch.fx.Node:
        """A node that reads an attribute of the graph's own module, such as a subgraph."""
        unique, number = name, 0
        while unique in self.attrs:
            unique = f"{name}_{number}"
            number += 1
        self.attrs[unique] = value
        node = self.graph.create_node("get_attr", unique, (), {})
        node.meta["example_value"] = value
        if self.current_frame is not None:
            self.describe(self.current_frame, node)
        return node

    # ---- the compiled function

    def count_calls(self) -> int:
        """How many calls the graph has."""
        return sum(1 for node in self.graph.nodes if node.op.startswith("call"))

    def finish(self, cg: Codegen, tx: Frame) -> list[str]:
        """Compiles the graph; the statements that call it."""
        self._remove_grad_modes()
        self._remove_unused(cg)
        if not self.graph_calls_needed(cg):
            return []
        values = tuple([vt.as_proxy() for vt in cg.outputs])
        self.graph.output(values)
        compiled = self._compile(tx)
        if self.enters_contexts():
            compiled = leaving(compiled)
        if self.open_modes:
            compiled = without_modes(compiled)
        if self.has_break:
            # Frames below the code of this entry are compiled; those of the graph are not.
            compiled = DisabledFunction(compiled)
        names = "".join(f"__o{i}, " for i in range(len(cg.outputs)))
        call = cg.graph_call(compiled, self.inputs)
        return [f"({names}) = {call}" if names else call]

    def enters_contexts(self) -> bool:
        """Whether the graph is inside of contexts of the program for a while."""
        return not self.lasting_modes and any(n.target in IN_GRAPH for n in self.graph.nodes)

    def graph_calls_needed(self, cg: Codegen) -> bool:
        """Whether the graph does anything."""
        return bool(cg.outputs) or self.count_calls() > 0

    def _remove_grad_modes(self) -> None:
        """Of several changes of the gradient mode in a row, only the last counts; none where it
        brings back what was before."""
        mode, row = self.grad_at_start, []
        for node in [*self.root.nodes, None]:
            if node is not None and node.target is torch._C._set_grad_enabled:
                row.append(node)
                continue
            if node is not None and node.op in ("placeholder", "get_attr"):
                continue
            if len(row) > 1:
                kept = row[-1:] if row[-1].args[0] != mode else []
                for extra in row:
                    if extra not in kept:
                        self.root.erase_node(extra)
            if row:
                mode = row[-1].args[0]
            row = []

    def _remove_unused(self, cg: Codegen) -> None:
        import operator

        used = {vt.as_proxy() for vt in cg.outputs}
        for node in reversed(list(self.graph.nodes)):
            if node.users or node in used:
                continue
            if (
                node.op == "placeholder"
                or node.op == "get_attr"
                or (
                    node.op == "call_function"
                    and (
                        (
                            node.target is operator.getitem
                            and isinstance(
                                node.meta.get("example_value"), torch.Tensor | torch.SymInt
                            )
                            and isinstance(node.args[0].meta.get("example_value"), tuple | list)
                        )
                        or isinstance(node.meta.get("example_value"), torch.SymInt | torch.SymFloat)
                    )
                )
            ):
                self.graph.erase_node(node)
        self.inputs = [item for item in self.inputs if not item.node._erased]

    def _compile(self, tx: Frame) -> Callable:
        self.compiled_name = f"__compiled_fn_{next(_compiled_names)}"
        root = torch.nn.Module()
        for name, value in self.attrs.items():
            setattr(root, name, value)
        module = torch.fx.GraphModule(root, self.graph, "GraphModule")
        self.graph_module = module
        examples = [item.example for item in self.inputs]
        backend = self.options.backend
        if backend is None:
            return module.forward
        try:
            # The graph starts in the mode that the frame started in, wherever the trace ended.
            with (
                dynamo_timed("OutputGraph.call_user_compiler", phase_name="backend_compile"),
                torch.set_grad_enabled(self.grad_at_start),
            ):
                compiled = backend(module, examples)
        except (torch._dynamo.exc.TorchDynamoException, KeyboardInterrupt):
            raise
        except Exception as error:
            if torch._dynamo.exc.is_of_signal(error):
                raise
            if isinstance(error, _DATA_DEPENDENT) and not self.options.fullgraph:
                # Such as the gradient of an operator that reads a tensor: Python knows the values.
                unimplemented("backend", str(error), "the backend needs values of tensors")
            raise BackendCompilerFailed(backend, error).with_traceback(
                error.__traceback__
            ) from None
        if not callable(compiled):
            raise BackendCompilerFailed(
                backend, TypeError(f"the backend returned {compiled!r}, not a callable")
            )
        if compiled is module:
            return module.forward
        return compiled

    def release(self) -> None:
        """Forgets what the trace held of the running program."""
        for vt in self.known.values():
            if isinstance(vt, UserDefinedObjectVariable | UnknownVariable):
                vt.value = None
        self.known.clear()
        self.keep.clear()
        self._cells.clear()
        self.orphans.clear()
        self.generators.clear()
        self.current_frame = None

    def forget(self) -> None:
        """Forgets everything. Trackers refer to each other and to this object; what they hold of
        the program is freed now, not when the collector runs."""
        self.__dict__.clear()


def _example(leaf: object) -> object:
    return leaf.meta["example_value"] if isinstance(leaf, torch.fx.Node) else leaf


def _thawed(value: object) -> object:
    """The arguments as plain containers; a graph keeps its own kind."""
    if isinstance(value, tuple):
        items = [_thawed(item) for item in value]
        if type(value) is tuple:
            return tuple(items)
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, list):
        return [_thawed(item) for item in value]
    if isinstance(value, dict):
        return {k: _thawed(v) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(_example(value.start), _example(value.stop), _example(value.step))
    return value


def _in_graph(value: object) -> bool:
    """Whether a value, or a part of it, is computed when the graph runs."""
    if isinstance(value, torch.Tensor | torch.SymInt | torch.SymFloat | torch.SymBool):
        return True
    if isinstance(value, tuple | list):
        return any(_in_graph(item) for item in value)
    return False


def _shown(target: Callable | str) -> str:
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))
