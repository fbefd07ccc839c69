"""Reads derivatives.yaml: which operator has which gradient formulas, and what each formula needs
from the forward pass.

A formula is a C++ expression. The names in it decide what a node saves: a tensor argument or result
used as such is saved as a tensor, `self.sizes()` and its like as plain values (or, for the input
the formula is the gradient of, not at all: the next node knows the shape), other arguments by
value. An operator that could be differentiated and is neither described nor listed as
nondifferentiable is found here, so that none is forgotten silently.
"""

from __future__ import annotations

import dataclasses
import re

from . import schema as sch
from .errors import GenError
from .model import Model, Op
from .yaml_lines import Mapping, load_list

# Properties of a tensor that are saved by value: method to (C++ type, how to read it from the
# metadata that the next node keeps of this input).
PROPERTIES = {
    "sizes": ("KeptSizes", "{m}.sizes"),
    "dim": ("int64_t", "static_cast<int64_t>({m}.sizes.size())"),
    "numel": ("KeptInt", "numel_of({m})"),
    "scalar_type": ("at::ScalarType", "{m}.dtype"),
    "is_complex": ("bool", "c10::isComplexType({m}.dtype)"),
    "options": ("at::TensorOptions", "options_of({m})"),
    "device": ("at::Device", "{m}.device"),
    "strides": ("KeptSizes", ""),
    "storage_offset": ("KeptInt", ""),
    "suggest_memory_format": ("at::MemoryFormat", ""),
}
# Arguments that never receive a gradient whatever the operator.
_INDEX_NAMES = frozenset("index indices mask condition".split())
_KEYS = frozenset(
    "name node shown_as edges output_differentiability no_grad save_as result".split()
)
_TOKEN = re.compile(r"(?<![\w.:])([A-Za-z_]\w*)(?:\.(" + "|".join(PROPERTIES) + r")\(\))?(?!\w|::)")


@dataclasses.dataclass
class Saved:
    """One thing a node keeps: a tensor (input or output), a property of one, or a plain value."""

    name: str  # in formulas
    kind: str  # tensor, output, property, value
    source: str  # C++ expression in the forward kernel
    arg: sch.Argument | None = None
    prop: str = ""
    late: bool = False  # saved after the operator ran, which may fill it

    @property
    def member(self) -> str:
        return f"{self.name}_"


@dataclasses.dataclass
class Formula:
    inputs: list[sch.Argument]
    text: str  # with properties replaced by plain names
    uses: list[str] = dataclasses.field(default_factory=list)  # names of Saved
    metas: list[str] = dataclasses.field(default_factory=list)  # inputs whose metadata is read


@dataclasses.dataclass
class Derivative:
    """The formulas of one operator; its in-place variant shares them."""

    op: Op
    node: str  # name that users see
    cls: str  # C++ class
    formulas: list[Formula]
    saved: dict[str, Saved]
    differentiable_outputs: list[int]
    line: int = 0
    shown_as: str = ""  # C++ expression over the arguments: the name of this very node
    edges: tuple[str, ...] = ()  # the inputs in another order than the schema's

    @property
    def inputs(self) -> list[sch.Argument]:
        """Inputs with a gradient, in the order of the node's edges."""
        named = {a.name for f in self.formulas for a in f.inputs}
        found = [a for a in self.op.schema.args if a.name in named]
        return sorted(found, key=lambda a: self.edges.index(a.name)) if self.edges else found


@dataclasses.dataclass
class Derivatives:
    by_op: dict[str, Derivative]  # full name of functional or in-place operator
    missing: list[Op]

    def of(self, op: Op) -> Derivative | None:
        return self.by_op.get(op.schema.full_name)


def output_names(schema: sch.Schema) -> list[str]:
    if len(schema.returns) == 1:
        return ["result"]
    return [r.name or f"result{i}" for i, r in enumerate(schema.returns)]


def node_name(base: str, number: int) -> str:
    words = "".join(part.title() for part in base.split("_"))
    return f"{words}Backward{number}"


class _Reader:
    def __init__(self, raw: Mapping, op: Op, number: int, file: str) -> None:
        self.raw = raw
        self.op = op
        self.file = file
        self.number = number
        self.outputs = output_names(op.schema)
        self.saved: dict[str, Saved] = {}

    def error(self, message: str, key: str = "") -> GenError:
        line = self.raw.key_lines.get(key, self.raw.line)
        return GenError(f"{self.op.schema.full_name}: {message}", self.file, line)

    def read(self) -> Derivative:
        formulas = []
        for key, text in self.raw.items():
            if key in _KEYS:
                continue
            inputs = [self.input(name.strip(), key) for name in key.split(",")]
            formulas.append(self.formula(inputs, str(text)))
        # Gradients do not depend on each other. Handlers of __torch_dispatch__ see the order in
        # which they are computed, which in PyTorch is that of the names.
        formulas.sort(key=lambda formula: formula.inputs[0].name)
        self.check_complete(formulas)
        flags = self.raw.get("output_differentiability")
        if flags is None:
            flags = [r.type.is_tensor_like for r in self.op.schema.returns]
        if len(flags) != len(self.op.schema.returns):
            raise self.error("'output_differentiability' needs one flag for each return")
        outputs = [i for i, flag in enumerate(flags) if flag in (True, "True")]
        name = node_name(self.op.base, self.number)
        cls = name
        if "node" in self.raw:
            name = str(self.raw["node"])
            cls = f"{name}_{self.op.struct}"
        shown_as = str(self.raw.get("shown_as", ""))
        edges = tuple(self.raw.get("edges", ()))
        made = Derivative(
            self.op, name, cls, formulas, self.saved, outputs, self.raw.line, shown_as
        )
        if edges and sorted(edges) != sorted(a.name for a in made.inputs):
            raise self.error("'edges' needs each input that has a formula once", "edges")
        made.edges = edges
        return made

    def input(self, name: str, key: str) -> sch.Argument:
        arg = self.op.schema.arg(name)
        if arg is None or not arg.type.is_tensor_like:
            raise self.error(f"'{name}' is not a Tensor argument", key)
        return arg

    def check_complete(self, formulas: list[Formula]) -> None:
        named = {a.name for f in formulas for a in f.inputs} | set(self.raw.get("no_grad", []))
        for arg in self.op.schema.args:
            if not arg.type.is_tensor_like or arg.is_out or arg.name in named:
                continue
            if arg.name not in _INDEX_NAMES:
                raise self.error(
                    f"the Tensor argument '{arg.name}' has no formula; list it under 'no_grad' "
                    "when it has no gradient"
                )

    def formula(self, inputs: list[sch.Argument], text: str) -> Formula:
        result = Formula(inputs, text)
        # The edge of an input holds its metadata only when that input has a gradient, which a
        # formula for several inputs cannot know.
        own = {a.name for a in inputs if not a.type.is_list and len(inputs) == 1}

        def replace(match: re.Match[str]) -> str:
            name, prop = match.group(1), match.group(2)
            return self.reference(result, own, name, prop) or match.group(0)

        result.text = _TOKEN.sub(replace, text)
        return result

    def reference(self, formula: Formula, own: set[str], name: str, prop: str | None) -> str:
        """The text that stands for a name of the formula; notes what must be saved for it."""
        schema = self.op.schema
        arg = next((a for a in schema.args if a.cpp_name == name and not a.is_out), None)
        is_output = name in self.outputs and arg is None
        if arg is None and not is_output:
            return ""
        tensor = is_output or (arg is not None and arg.type.is_tensor_like)
        if prop and tensor:
            if name in own and PROPERTIES[prop][1]:
                if name not in formula.metas:
                    formula.metas.append(name)
                return PROPERTIES[prop][1].format(m=f"{name}_meta")
            saved = f"{name}_{prop}"
            method = f"sym_{prop}" if PROPERTIES[prop][0].startswith("Kept") else prop
            source = f"{name}.{method}()" if arg is None or not arg.type.is_list else name
            self.saved.setdefault(saved, Saved(saved, "property", source, arg, prop))
        else:
            saved = name
            kind = "output" if is_output else "tensor" if tensor else "value"
            late = is_output or name in self.raw.get("no_grad", []) or bool(arg and arg.is_write)
            source = str(self.raw.get("save_as", {}).get(name, name))
            self.saved.setdefault(saved, Saved(saved, kind, source, arg, late=late))
        if saved not in formula.uses:
            formula.uses.append(saved)
        return saved if prop and tensor else name


def _is_composite(op: Op) -> bool:
    return any(k.key in ("CompositeImplicitAutograd", "Autograd") for k in op.kernels)


def _could_differentiate(op: Op) -> bool:
    s = op.schema
    takes = any(a.type.is_tensor_like for a in s.args)
    gives = any(r.type.is_tensor_like for r in s.returns) or any(a.is_write for a in s.args)
    return takes and gives and not s.is_out and not _is_composite(op)


def _match(names: set[str], op: Op) -> bool:
    return op.schema.full_name in names or op.schema.name in names


def _zero_formula(op: Op, number: int) -> Derivative:
    """An in-place write of values that do not depend on the old ones."""
    self_arg = op.schema.self_arg
    assert self_arg is not None
    text = "zeros_like_each(grads)" if self_arg.type.is_list else "at::zeros_like(grad)"
    name = node_name(op.base, number)
    return Derivative(op, name, name, [Formula([self_arg], text)], {}, [0])


def load(path: str, model: Model) -> Derivatives:
    """Reads the formulas and checks them against the operator list."""
    entries, _, file = load_list(path)
    ops = {op.schema.full_name: op for op in model.ops}
    counts: dict[str, int] = {}
    found: dict[str, Derivative] = {}
    constant: set[str] = set()
    for raw in entries:
        if "nondifferentiable" in raw:
            constant.update(raw["nondifferentiable"])
            continue
        if not isinstance(raw.get("name"), str):
            raise GenError("an entry needs 'name' or 'nondifferentiable'", file, raw.line)
        name = raw["name"].split("(")[0].strip()
        op = ops.get(name)
        if op is None:
            raise GenError(f"'{name}' is not an operator of the list", file, raw.line)
        if "(" in raw["name"] and str(sch.parse(raw["name"])) != str(op.schema):
            raise GenError(f"the schema differs from '{op.schema}'", file, raw.line)
        number = counts.get(op.base, 0)
        if "node" not in raw:
            counts[op.base] = number + 1
        found[name] = _Reader(raw, op, number, file).read()
    missing: list[Op] = []
    for op in model.ops:
        name = op.schema.full_name
        if name in found or not _could_differentiate(op):
            continue
        if op.schema.is_inplace:
            overload = f".{op.schema.overload}" if op.schema.overload else ""
            if op.functional:
                functional = op.functional.schema.full_name
            else:
                functional = sch.base_name(op.schema.name) + overload
            if functional in found:
                found[name] = found[functional]
            elif op.functional and _match(constant, op.functional):
                found[name] = _zero_formula(op, counts.get(op.base, 0))
                counts[op.base] = counts.get(op.base, 0) + 1
            elif not _match(constant, op):
                missing.append(op)
        elif not _match(constant, op):
            missing.append(op)
    return Derivatives(found, missing)
