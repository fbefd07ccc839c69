"""What Python sees of the operators: functions and methods by module, each with its signatures in
the order they are tried. Functional and out variants become one signature with `out=None`, `self`
is called `input` in functions, factory options get `requires_grad`. Bindings, stubs, the override
table and the reference page are all made from this.
"""

from __future__ import annotations

import dataclasses

from .cpp_types import SCALAR_TYPES_BY_NUMBER, string_value
from .model import Model, Op
from .schema import (
    MEMORY_FORMAT_NAMES,
    REDUCTION_NAMES,
    SCALAR_TYPE_NAMES,
    Argument,
    Type,
    list_items,
)

MODULES = ("torch", "method", "nn", "linalg", "special", "fft", "sparse", "nested")
MODULE_PATHS = {"torch": "torch", "method": "torch.Tensor", "nn": "torch.nn.functional"}

# Earlier is tried first where two signatures have different types at one position: a Tensor may be
# given as a number, so the number comes last.
_RANK = ("Tensor", "Tensor[]", "bool", "ScalarType", "int[]", "int", "float", "Scalar", "Scalar[]")
_DTYPE_NAMES = {
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Half": "float16",
    "Float": "float32",
    "Double": "float64",
    "ComplexHalf": "complex32",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
    "Bool": "bool",
    "BFloat16": "bfloat16",
}
# The number form of these is reached through their Tensor form, so it is not listed in messages.
_HIDDEN_SCALAR_FORMS = frozenset(
    """add add_ sub sub_ subtract subtract_ mul mul_ multiply multiply_ div div_ divide divide_
    true_divide true_divide_ floor_divide floor_divide_ __and__ __iand__ __or__ __ior__ __xor__
    __ixor__ xlogy xlogy_""".split()
)


@dataclasses.dataclass(frozen=True)
class PyParam:
    """One Python parameter. `role` says where the value goes: an operator argument, out, or
    requires_grad."""

    name: str
    type: Type
    default: str | None
    kwarg_only: bool
    role: str  # arg, out, requires_grad
    arg: Argument | None = None

    @property
    def default_text(self) -> str | None:
        return None if self.default is None else python_default(self.type, self.default)


@dataclasses.dataclass
class PySignature:
    name: str
    kind: str  # function or method
    op: Op
    out: Op | None
    params: list[PyParam]
    hidden: bool = False
    deprecated: bool = False

    @property
    def positional(self) -> int:
        return sum(not p.kwarg_only for p in self.params)

    @property
    def visible_params(self) -> list[PyParam]:
        return self.params[1:] if self.kind == "method" else self.params

    @property
    def varargs(self) -> bool:
        """`zeros(2, 3)`: the only positional parameter is a list of ints."""
        positional = [p for p in self.visible_params if not p.kwarg_only]
        if len(positional) != 1:
            return False
        t = positional[0].type
        return t.is_list and t.base in ("int", "SymInt") and not t.optional

    @property
    def is_factory(self) -> bool:
        return any(p.role == "requires_grad" for p in self.params)

    def index(self, name: str, role: str = "arg") -> int:
        return next(
            i
            for i, p in enumerate(self.params)
            if p.role == role and (role != "arg" or _is(p, name))
        )

    @property
    def message_text(self) -> str:
        """How the signature reads in an error: `add(Tensor input, Tensor other, *, Number alpha =
        1)`."""
        items: list[str] = []
        star = False
        for p in self.visible_params:
            if p.kwarg_only and not star:
                items.append("*")
                star = True
            default = "" if p.default_text is None else f" = {p.default_text}"
            items.append(f"{message_type(p.type)} {p.name}{default}")
        return f"{self.name}({', '.join(items)})"


def _is(param: PyParam, name: str) -> bool:
    return param.arg is not None and param.arg.name == name


@dataclasses.dataclass
class PyFunction:
    module: str
    name: str
    signatures: list[PySignature]

    @property
    def path(self) -> str:
        return module_path(self.module)


def module_path(module: str) -> str:
    return MODULE_PATHS.get(module, f"torch.{module}")


# ---- spelling ------------------------------------------------------------------------------------


def python_default(t: Type, text: str) -> str:
    """A schema default as a Python expression."""
    if text == "None":
        return "None"
    if t.is_list:
        items = list_items(text) if text.startswith("[") else [text]
        values = [python_default(Type(t.base), i) for i in items]
        if t.size and len(values) in (1, t.size) and len(set(values)) == 1:
            return values[0]  # `stride=[1, 1]` of int[2] reads `stride=1`
        if not values:
            return "()"
        return f"({values[0]},)" if len(values) == 1 else f"({', '.join(values)})"
    if t.base == "ScalarType":
        name = SCALAR_TYPE_NAMES.get(text) or SCALAR_TYPES_BY_NUMBER[int(text)]
        return f"torch.{_DTYPE_NAMES.get(name, name.lower())}"
    if t.base == "MemoryFormat":
        return (
            f"torch.{text if text in MEMORY_FORMAT_NAMES else list(MEMORY_FORMAT_NAMES)[int(text)]}"
        )
    if t.base == "Layout":
        return "torch.strided"
    if t.base in ("str", "Device"):
        return repr(string_value(text))
    text = REDUCTION_NAMES.get(text, text)
    if text.endswith("inf"):
        return f'float("{text}")'
    is_float = text not in ("True", "False") and any(c in text for c in ".e")
    return repr(float(text)) if is_float else text


def message_type(t: Type) -> str:
    lists = {
        "int": "ints",
        "SymInt": "ints",
        "float": "floats",
        "Scalar": "Scalars",
        "Tensor": "Tensors",
        "bool": "bools",
    }
    if t.is_list:
        return f"tuple of {lists.get(t.base, t.base)}"
    words = {
        "Scalar": "Number",
        "SymInt": "int",
        "ScalarType": "torch.dtype",
        "Layout": "torch.layout",
        "Device": "torch.device",
        "MemoryFormat": "torch.memory_format",
        "Generator": "torch.Generator",
        "Stream": "torch.Stream",
    }
    return words.get(t.base, t.base)


# ---- building ------------------------------------------------------------------------------------


def _comparable(op: Op, drop_options: bool) -> tuple[str, ...]:
    options = op.options_args if drop_options else ()
    return tuple(f"{a.type} {a.name}" for a in op.schema.args if not a.is_out and a not in options)


def _python_out(op: Op) -> bool:
    """Whether Python can pass the out arguments: one tensor, one list, or several tensors, but no
    mixture."""
    outs = op.schema.out_args
    return op.entry.python_out and (len(outs) == 1 or not any(a.type.is_list for a in outs))


def is_bound(op: Op) -> bool:
    return op.entry.python_inplace if op.schema.is_inplace else op.entry.python


def _pair_outs(ops: list[Op]) -> tuple[dict[int, Op], list[Op]]:
    """Finds for each functional operator (by id) its out variant; also returns the out variants
    left over."""
    pairs: dict[int, Op] = {}
    left: list[Op] = []
    functionals = [op for op in ops if not op.schema.is_out and not op.schema.is_inplace]
    for out in ops:
        if not out.schema.is_out or not _python_out(out):
            continue
        partner = out.functional
        if partner is None or partner not in functionals:
            partner = next(
                (
                    f
                    for f in functionals
                    if f.schema.name == out.schema.name
                    and id(f) not in pairs
                    and _comparable(f, True) == _comparable(out, False)
                ),
                None,
            )
        if partner is None:
            left.append(out)
        else:
            pairs.setdefault(id(partner), out)
    return pairs, left


def _takes_requires_grad(op: Op) -> bool:
    """Factories do; conversions (to, _to_copy), which have the same options, do not."""
    return bool(op.options_args) and not op.schema.name.startswith(("to", "_to"))


def _signature(op: Op, out: Op | None, kind: str) -> PySignature:
    params: list[PyParam] = []
    later: list[PyParam] = []
    tail: list[PyParam] = []
    for arg in op.schema.args:
        if arg.is_out:
            continue
        name = arg.name
        if (
            kind == "function"
            and name == "self"
            and arg.type.base == "Tensor"
            and not arg.type.is_list
        ):
            name = "input"
        in_options = arg in op.options_args and _takes_requires_grad(op)
        default = arg.default
        if in_options:
            default = "False" if arg.name == "pin_memory" else "None"
        param = PyParam(name, arg.type, default, arg.kwarg_only, "arg", arg)
        (tail if in_options else later if arg.kwarg_only else params).append(param)
    if kind == "method":
        params.sort(key=lambda p: not _is(p, "self"))
    out_op = out if out is not None else (op if op.schema.is_out else None)
    if out_op is not None:
        outs = out_op.schema.out_args
        many = len(outs) > 1 or outs[0].type.is_list
        type_ = (
            Type("Tensor", is_list=True, size=len(outs) if len(outs) > 1 else 0)
            if many
            else Type("Tensor")
        )
        later.append(PyParam("out", type_, None if out is None else "None", True, "out"))
    if tail:
        tail.append(PyParam("requires_grad", Type("bool"), "False", True, "requires_grad"))
    return PySignature(op.schema.name, kind, op, out, [*params, *later, *tail])


def _rank(t: Type) -> int:
    # Words come last: where neither is given, conv2d's padding is a number and not "valid".
    if t.base == "str":
        return len(_RANK)
    text = f"{'int' if t.base == 'SymInt' else t.base}{'[]' if t.is_list else ''}"
    return _RANK.index(text) if text in _RANK else 3


def _order(sig: PySignature) -> tuple[float, ...]:
    ranks: list[float] = [_rank(p.type) for p in sig.params if not p.kwarg_only]
    if sig.varargs:
        # `t.hsplit(2)` is a number of sections; as a list spread out it would be one index.
        ranks[-1] = _RANK.index("int") + 0.5
    return tuple(ranks)


def _mark_hidden(signatures: list[PySignature]) -> None:
    if not signatures or signatures[0].name not in _HIDDEN_SCALAR_FORMS or len(signatures) < 2:
        return
    keywords = {p.name for p in signatures[0].params if p.kwarg_only}
    for sig in signatures:
        others = [p for p in sig.params if _is(p, "other")]
        sig.hidden = bool(others) and others[0].type.base == "Scalar"
        if sig.hidden:
            # `add(t, 2, 3)`: alpha is given by name in both forms.
            sig.params = [
                dataclasses.replace(p, kwarg_only=True) if p.name in keywords else p
                for p in sig.params
            ]


def _number_forms(sig: PySignature) -> list[PySignature]:
    """The calls of old that give the keyword-only numbers by position. A single number stands
    behind input, `addcmul(input, value, t1, t2)`; of two, beta stands before input and alpha, which
    may be left out, behind it: `addmm(beta, input, alpha, mat1, mat2)`."""
    numbers = [p for p in sig.params if p.kwarg_only and p.role == "arg"]
    if not sig.op.entry.numbers_first or not numbers:
        return []
    given = [dataclasses.replace(p, kwarg_only=False, default=None) for p in numbers]
    this, *tensors = (p for p in sig.params if not p.kwarg_only)
    rest = [p for p in sig.params if p.role != "arg"]
    if len(numbers) == 1:
        orders = [[this, *given, *tensors, *rest]]
    else:
        beta, alpha = given
        head = [this, beta] if sig.kind == "method" else [beta, this]
        orders = [[*head, alpha, *tensors, *rest], [*head, *tensors, numbers[1], *rest]]
    return [
        PySignature(sig.name, sig.kind, sig.op, sig.out, o, hidden=True, deprecated=True)
        for o in orders
    ]


def build(model: Model) -> dict[str, list[PyFunction]]:
    """All Python functions by module (see MODULES), sorted by name."""
    found: dict[str, dict[str, list[PySignature]]] = {m: {} for m in MODULES}

    def add(module: str, sig: PySignature) -> None:
        found[module].setdefault(sig.name, []).append(sig)

    for ops in model.by_base().values():
        visible = [op for op in ops if is_bound(op)]
        pairs, left = _pair_outs(visible)
        for op in visible:
            module = op.entry.python_module or "torch"
            if op.schema.is_out:
                if op in left and "function" in op.variants:
                    add(module, _signature(op, None, "function"))
                continue
            if "function" in op.variants:
                add(module, _signature(op, pairs.get(id(op)), "function"))
            if "method" in op.variants:
                add("method", _signature(op, None, "method"))
    result: dict[str, list[PyFunction]] = {}
    for module, names in found.items():
        for signatures in names.values():
            signatures.sort(key=_order)
            _mark_hidden(signatures)
            signatures += [form for sig in signatures for form in _number_forms(sig)]
        result[module] = [PyFunction(module, n, sigs) for n, sigs in sorted(names.items())]
    return result
