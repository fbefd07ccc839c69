"""Writes the code that takes the place of the traced function: load the inputs, call the graph,
make the objects that live on, make the changes, return or go on after a break. It is written
as Python text and compiled by Python itself, so that it can be read and does not depend on the
version."""

from __future__ import annotations

import keyword
import types
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch._C._dynamo.eval_frame import GraphCall
from torch._dynamo import polyfills
from torch._dynamo.code_text import code_of, constant_lines
from torch._dynamo.exc import unimplemented
from torch._dynamo.fetch_plan import FEW_STEPS, FetchPlan
from torch._dynamo.source import (
    AttrSource,
    ClassDictSource,
    ClosureSource,
    ContainedItemSource,
    DictKeySource,
    GetItemSource,
    GlobalSource,
    LocalSource,
    NumpyTensorSource,
    TensorPropertySource,
    TorchFunctionModeStackSource,
    TupleIteratorGetItemSource,
    TypeSource,
    WeakRefCallSource,
)
from torch._dynamo.variables.base import LazyVariableTracker, VariableTracker
from torch._dynamo.variables.constant import LITERALS, ConstantVariable
from torch._dynamo.variables.tensor import TensorVariable, plain_in_graph
from torch._dynamo.variables.user_defined import (
    DELETED,
    UserDefinedObjectVariable,
    c_base,
    is_behind_descriptor,
)

if TYPE_CHECKING:
    from torch._dynamo.output_graph import GraphInput, OutputGraph
    from torch._dynamo.variables.functions import CellVariable
    from torch._dynamo.variables.random_numbers import EarlyValueVariable
    from torch._guards import Source


class Codegen:
    """The text of one function. `reads` take values from the running program, before the graph is
    called and anything is changed; then `loads` make new objects and `effects` change old ones."""

    def __init__(self, out: OutputGraph, code: types.CodeType) -> None:
        self.out = out
        self.code = code
        self.reads: list[str] = []
        self.loads: list[str] = []
        self.effects: list[str] = []
        self.tail: list[str] = []
        self.consts: list[object] = []
        # The object that calls the graph, and what it fetches for it.
        self.graph_object: tuple[object, list | None] | None = None
        self._const_names: dict[int, str] = {}
        self._names: dict[int, str] = {}
        self._busy: set[int] = set()
        self._cells: list[tuple[str, VariableTracker]] = []
        self._sources: dict[Source, str] = {}
        self.outputs: list[VariableTracker] = []
        self._outputs: dict[object, int] = {}
        self._count = 0
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 4) + bool(code.co_flags & 8)
        self.params = code.co_varnames[:count]
        self._local = {n: _identifier(n, i) for i, n in enumerate(self.params)}
        for call in out.early_calls:
            self._make_early(call)
        self.made_inputs = {
            item.node: self._before_graph(item.made) for item in out.inputs if item.made is not None
        }

    # ---- pieces of text

    def temporary(self) -> str:
        """A new name."""
        self._count += 1
        return f"__t{self._count}"

    def load(self, line: str) -> None:
        """A statement before the changes."""
        self.loads.append(line)

    def effect(self, line: str) -> None:
        """A statement that changes something."""
        self.effects.append(line)

    def name_for(self, text: str) -> str:
        """A name for the value of an expression."""
        name = self.temporary()
        self.loads.append(f"{name} = {text}")
        return name

    def made(self, vt: VariableTracker, name: str) -> None:
        """The value has this name from now on."""
        self._names[id(vt)] = name

    def const(self, value: object) -> str:
        """A name for an object that is part of the code."""
        name = self._const_names.get(id(value))
        if name is None:
            name = f"__k{len(self.consts)}"
            self.consts.append(value)
            self._const_names[id(value)] = name
        return name

    def constant(self, value: object) -> str:
        """A constant as text."""
        if type(value) in LITERALS and type(value) is not float and type(value) is not complex:
            return f"({value!r})" if type(value) is int else repr(value)
        return self.const(value)

    # ---- values

    def expr(self, vt: VariableTracker) -> str:
        """An expression for a value; the same object gets the same name."""
        if type(vt) is LazyVariableTracker:
            if not vt.is_realized():
                return self.source(vt.source)
            vt = vt.realize()
        if type(vt) is ConstantVariable:
            if vt.source is None or type(vt.value) in LITERALS:
                return self.constant(vt.value)
        name = self._names.get(id(vt))
        if name is not None:
            return name
        holder = self.out.holders.get(id(vt))
        if holder is not None:
            return self.expr(holder)
        if vt.source is not None:
            name = self.source(vt.source)
            self._names[id(vt)] = name
            return name
        if id(vt) in self._busy:
            unimplemented("reconstruct", repr(vt), "an immutable value that contains itself")
        self._busy.add(id(vt))
        outermost = len(self._busy) == 1
        graph_value = self.out.graph_value(vt)
        if graph_value is not None:
            text = self.graph_output(graph_value, vt)
            if type(vt) is TensorVariable and plain_in_graph(vt.cls):
                text = f"{self.const(polyfills.as_subclass)}({text}, {self.const(vt.cls)})"
        else:
            text = vt.reconstruct(self)
        self._busy.discard(id(vt))
        while outermost and self._cells:
            if id(vt) not in self._names:
                self._names[id(vt)] = text = self.name_for(text)
            name, contents = self._cells.pop()
            self.load(f"{name}.cell_contents = {self.expr(contents)}")
        if id(vt) in self._names:
            return self._names[id(vt)]
        if vt.is_mutable() and not text.isidentifier():
            text = self.name_for(text)
        self._names[id(vt)] = text
        return text

    def builtin_call(self, vt: VariableTracker, name: str) -> str:
        """A call of a container's method, of the builtin class where an object of a class of the
        program holds it, which may have another one of that name."""
        if id(vt) in self.out.holders:
            return f"{self.const(getattr(vt.python_type(), name))}({self.expr(vt)})"
        return f"{self.expr(vt)}.{name}()"

    def _before_graph(self, vt: VariableTracker) -> str:
        """A value that the graph takes, made of what the running program has."""
        after, self.loads = self.loads, self.reads
        try:
            text = self.expr(vt)
        finally:
            self.loads = after
        if self.outputs:
            unimplemented("input of a graph", repr(vt), "it holds a tensor that the graph computes")
        return text

    def _make_early(self, call: EarlyValueVariable) -> None:
        after, self.loads = self.loads, self.reads
        try:
            call.write(self)
        finally:
            self.loads = after

    def graph_input(self, item: GraphInput) -> str:
        """An argument of the graph, which gets tensors of classes that take over calls as plain
        ones."""
        text = self.source(item.source)
        if item.node.meta.get("made_plain"):
            return f"{self.const(polyfills.as_subclass)}({text}, {self.const(torch.Tensor)})"
        return text

    def graph_call(self, compiled: Callable, inputs: list[GraphInput]) -> str:
        """The call of the graph. Values that lie inside of others are fetched in C++ where there
        are many."""
        plan = FetchPlan()
        for item in inputs:
            if item.made is not None:
                plan.add(self.made_inputs[item.node])
            elif item.node.meta.get("made_plain"):
                plan.add(self.graph_input(item))
            else:
                plan.add(item.source)
        if len(plan) < FEW_STEPS:
            args = [
                self.graph_input(item) if item.made is None else self.made_inputs[item.node]
                for item in inputs
            ]
            self.graph_object = (compiled, None)
            return f"{self.const(compiled)}({', '.join(args)})"
        roots = [root if isinstance(root, str) else self.source(root) for root in plan.roots]
        call = GraphCall(compiled, len(roots), plan.steps(), plan.outputs())
        self.graph_object = (call, [len(roots), plan.steps(), plan.outputs()])
        return f"{self.const(call)}({', '.join(roots)})"

    def graph_output(self, node: object, vt: VariableTracker) -> str:
        """The name of a value that the graph computes."""
        index = self._outputs.get(node)
        if index is None:
            index = self._outputs[node] = len(self.outputs)
            self.outputs.append(vt)
        return f"__o{index}"

    def new_object(self, vt: UserDefinedObjectVariable) -> str:
        """An object of a class written in Python, with its attributes."""
        cls = self.const(vt.cls)
        given = "".join(f", {self.expr(a)}" for a in vt.init_args)
        name = self.name_for(f"{self.const(c_base(vt.cls))}.__new__({cls}{given})")
        self.made(vt, name)
        if vt.contents is not None and vt.contents.is_mutable():
            before, self.effects = self.effects, []
            vt.contents.write_back(self, name)
            self.loads += self.effects
            self.effects = before
        for attr, value in vt.attrs.items():
            if value is DELETED:
                continue
            if is_behind_descriptor(vt.cls, attr):
                self.load(f"{name}.__dict__[{attr!r}] = {self.expr(value)}")
            else:
                self.load(f"object.__setattr__({name}, {attr!r}, {self.expr(value)})")
        return name

    def new_cell(self, cell: CellVariable) -> str:
        """A cell that the trace made."""
        name = self.name_for(f"{self.const(types.CellType)}()")
        self.made(cell, name)
        if cell.contents is not None:
            # A function may hold the cell that holds it: filled when the function is there.
            self._cells.append((name, cell.contents))
        return name

    def source(self, source: Source) -> str:
        """A name for what a source gives, read before the changes."""
        name = self._sources.get(source)
        if name is None:
            text = self.source_text(source)
            name = text
            if not text.isidentifier():
                name = self.temporary()
                self.reads.append(f"{name} = {text}")
            self._sources[source] = name
        return name

    def source_text(self, source: Source) -> str:
        """A source as an expression of this function."""
        if isinstance(source, LocalSource):
            return self._local.get(source.local_name, source.local_name)
        if isinstance(source, GlobalSource):
            return f"{self.const(self.out.root_globals)}[{source.global_name!r}]"
        if isinstance(source, ClosureSource):
            place = self.code.co_freevars.index(source.cell_name)
            return f"__cells[{place}]"
        if isinstance(source, TorchFunctionModeStackSource):
            return f"{self.const(torch._C._get_function_stack_at)}({source.ind})"
        base = self.source(source.base)
        if isinstance(source, AttrSource):
            if all(p.isidentifier() and not keyword.iskeyword(p) for p in source.member.split(".")):
                return f"{base}.{source.member}"
            return f"getattr({base}, {source.member!r})"
        if isinstance(source, TupleIteratorGetItemSource):
            return f"{self.const(polyfills.coming)}({base}, {source.index})"
        if isinstance(source, GetItemSource):
            found = source.index
            key = self.source(found) if isinstance(found, DictKeySource) else self.constant(found)
            if isinstance(source, ContainedItemSource):
                return f"{self.const(source.cls.__getitem__)}({base}, {key})"
            return f"{base}[{key}]"
        if isinstance(source, NumpyTensorSource):
            return f"{self.const(torch.as_tensor)}({base})"
        if isinstance(source, WeakRefCallSource):
            return f"{base}()"
        if isinstance(source, TypeSource):
            return f"{self.const(type)}({base})"
        if isinstance(source, ClassDictSource):
            return f"{base}.__mro__[{source.place}].__dict__[{source.member!r}]"
        if isinstance(source, DictKeySource):
            return f"{self.const(list)}({self.const(dict.keys)}({base}))[{source.index}]"
        if isinstance(source, TensorPropertySource):
            call = f"{base}.{source.prop.method_name()}()"
            return call if source.idx is None else f"{call}[{source.idx}]"
        raise AssertionError(f"no code for {source!r}")

    # ---- the function

    def assemble(self, graph_call: list[str], line: int) -> types.CodeType:
        """The code object. `graph_call` are the statements that run the graph; `line` is the
        program's where the trace ended."""
        head = constant_lines(len(self.consts))
        free = self.code.co_freevars
        if free:
            head.append(f"__cells = (lambda: ({', '.join(free)},)).__closure__")
        body = [*head, *self.reads, *graph_call, *self.loads, *self.effects, *self.tail]
        params = ", ".join(self._local[n] for n in self.params)
        text = "\n".join(f"        {line}" for line in body) or "        pass"
        outer = "".join(f"    {name} = None\n" for name in free)
        full = f"def __outer():\n{outer}    def __compiled({params}):\n{text}\n"
        self.text = full
        return code_of(full, self.code, self.consts, line)


def _identifier(name: str, index: int) -> str:
    return name if name.isidentifier() and not keyword.iskeyword(name) else f"__p{index}"
