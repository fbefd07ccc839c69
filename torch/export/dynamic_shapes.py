"""Sizes of inputs that may vary between runs of an exported program: `Dim` and the hints AUTO,
DYNAMIC and STATIC, the ways to say which input has which (`ShapesCollection`, `AdditionalInputs`),
and how a nested description is matched with the inputs."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple

import torch
import torch.utils._pytree as pytree

__all__ = [
    "AdditionalInputs",
    "Constraint",
    "Dim",
    "ShapesCollection",
    "dims",
    "refine_dynamic_shapes_from_suggested_fixes",
]


class _DimHintType(Enum):
    AUTO = auto()
    STATIC = auto()
    DYNAMIC = auto()


@dataclasses.dataclass
class _DimHint:
    """Whether a size may vary. Calling a hint gives one with bounds."""

    type: _DimHintType
    min: int | None = None
    max: int | None = None
    _factory: bool | None = True

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        if not self._factory:
            raise TypeError(f"'{type(self).__name__}' object is not callable")
        if (min is not None and min < 0) or (max is not None and max < 0):
            raise AssertionError(f"bounds of a size are not negative, got min={min}, max={max}")
        if min is not None and max is not None and min > max:
            raise AssertionError(f"min must be <= max, got min={min}, max={max}")
        return _DimHint(self.type, min=min, max=max, _factory=False)

    def __repr__(self) -> str:
        parts = [self.type.name]
        parts += [f"{n}={v}" for n, v in (("min", self.min), ("max", self.max)) if v is not None]
        return f"DimHint({', '.join(parts)})"


class Dim:
    """A named size with bounds. Equal names mean equal sizes. Sums with and products with integers
    are sizes too (`2 * dim + 1`)."""

    AUTO = _DimHint(_DimHintType.AUTO)
    DYNAMIC = _DimHint(_DimHintType.DYNAMIC)
    STATIC = _DimHint(_DimHintType.STATIC)

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        from torch.utils._sympy.numbers import int_oo

        low, high = 0 if min is None else min, int_oo if max is None else max
        if not high > low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name
        self.min, self.max = low, high

    # A size is scale * root + offset.
    root: Dim
    scale = 1
    offset = 0

    def _root(self) -> Dim:
        return self

    def _derived(self, scale: int, offset: int) -> _DerivedDim:
        root = self._root()
        return _DerivedDim(root, self.scale * scale, self.offset * scale + offset)

    def __add__(self, other: int) -> Dim:
        if type(other) is not int:
            raise NotImplementedError(_not_linear("add", other, "to", self, "an integer"))
        return self._derived(1, other)

    __radd__ = __add__

    def __sub__(self, other: int) -> Dim:
        if type(other) is not int:
            raise NotImplementedError(_not_linear("subtract", other, "from", self, "an integer"))
        return self._derived(1, -other)

    def __rsub__(self, other: int) -> Dim:
        raise NotImplementedError(
            f"Attempted to negate {self.__name__}. (Only increasing linear operations with "
            "integer coefficients are supported.)"
        )

    def __mul__(self, other: int) -> Dim:
        if type(other) is not int or other <= 0:
            raise NotImplementedError(
                _not_linear("multiply", other, "with", self, "a positive integer")
            )
        return self._derived(other, 0)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return _definition(self.__name__, self.min, self.max)

    def _readable(self, name: str, low: int, high: int) -> str:
        return _definition(name, low, high)


def _definition(name: str, low: int, high: int) -> str:
    """Dim('x', min=2): bounds that say nothing are left out."""
    from torch.utils._sympy.numbers import int_oo

    text = f"Dim('{name}'"
    if low > 0:
        text += f", min={low}"
    if high != int_oo:
        text += f", max={high}"
    return f"{text})"


def _not_linear(verb: str, other: object, word: str, dim: Dim, wanted: str) -> str:
    return (
        f"Attempted to {verb} {other} {word} {dim.__name__}, where {wanted} was expected. (Only "
        "increasing linear operations with integer coefficients are supported.)"
    )


class _DerivedDim(Dim):
    """scale * root + offset"""

    def __init__(self, root: Dim, scale: int, offset: int) -> None:
        self.root, self.scale, self.offset = root, scale, offset
        self.__name__ = linear_text(root.__name__, scale, offset)

    def _root(self) -> Dim:
        return self.root

    @property
    def min(self) -> int:
        """The least value; it has to be a size."""
        low = self.scale * self.root.min + self.offset
        if low < 0:
            raise AssertionError(
                f"Expected derived min value of {self.__name__} to be >= 0. Please specify an "
                f"appropriate min value for {self.root.__name__} (currently {self.root.min})."
            )
        return low

    @property
    def max(self) -> int:
        """The largest value."""
        from torch.utils._sympy.numbers import int_oo

        high = self.root.max
        return int_oo if high is int_oo else self.scale * high + self.offset

    def __repr__(self) -> str:
        return self.__name__


def linear_text(name: str, scale: int, offset: int) -> str:
    """2*name + 1"""
    text = name if scale == 1 else f"{scale}*{name}"
    if offset == 0:
        return text
    return f"{text} {'+' if offset > 0 else '-'} {abs(offset)}"


class _StaticDim(Dim):
    """A size that is one number."""

    def __init__(self, value: int) -> None:
        self.__name__ = str(value)
        self.value = self.min = self.max = value


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several Dim at once."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class Constraint:
    """What older programs made of a dimension; `Dim` takes its place."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError("torch.export.Constraint cannot be made; use torch.export.Dim")


# ---- inputs by the names of parameters


def _signature_of(f: Callable[..., object]) -> inspect.Signature:
    if isinstance(f, torch.jit.ScriptModule):
        names = [argument.name for argument in f.forward.schema.arguments[1:]]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name in names])
    if isinstance(f, torch.nn.Module):
        return inspect.signature(f.forward)
    return inspect.signature(f)


def _combine_args(
    f: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object] | None
) -> dict[str, object]:
    """{parameter: what it gets}; keywords of a `**kwargs` parameter stand for themselves."""
    signature = _signature_of(f)
    bound = dict(signature.bind(*args, **(kwargs or {})).arguments)
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD and parameter.name in bound:
            bound.update(bound.pop(parameter.name))
    return bound


def input_paths(
    f: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> list[tuple]:
    """For each leaf of (args, kwargs): the name of its parameter, then the keys that lead to it."""
    names = _positional_names(f, len(args))
    found = []
    for path, _ in pytree.tree_leaves_with_path((args, kwargs)):
        if path[0].idx == 0:
            found.append((*names[path[1].idx], *path[2:]))
        else:
            found.append((path[1].key, *path[2:]))
    return found


def _positional_names(f: Callable[..., object], count: int) -> list[tuple]:
    names: list[tuple] = []
    for parameter in _signature_of(f).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            rest = count - len(names)
            names += [(parameter.name, pytree.SequenceKey(i)) for i in range(rest)]
            break
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append((parameter.name,))
    return names[:count]


# ---- a description matched with inputs


class SizeSpec(NamedTuple):
    """What was said of one input: a Dim, a hint, a number or None per dimension; for an integer
    the only entry."""

    path: tuple
    value: object
    dims: list[object]


def _user_error(text: str, case_name: str = "dynamic_shapes_validation") -> Exception:
    from torch._dynamo.exc import UserError, UserErrorType

    return UserError(UserErrorType.INVALID_INPUT, text, case_name=case_name)


def match(
    combined: dict[str, object], dynamic_shapes: dict | tuple | list | None
) -> Iterator[SizeSpec]:
    """The sizes of every tensor of the inputs. Raises where structures differ."""
    if dynamic_shapes is None or len(dynamic_shapes) == 0:
        shapes = dict.fromkeys(combined)
    elif isinstance(dynamic_shapes, dict):
        if list(dynamic_shapes) != list(combined) and set(dynamic_shapes) != set(combined):
            raise _user_error(_wrong_names(combined, dynamic_shapes))
        shapes = {name: dynamic_shapes[name] for name in combined}
    else:
        if len(dynamic_shapes) != len(combined):
            raise _mismatch(
                "", f"has {len(combined)} elements", f"has {len(dynamic_shapes)} elements"
            )
        shapes = dict(zip(combined, dynamic_shapes, strict=True))
    for place, (name, value) in enumerate(combined.items()):
        yield from _match(value, shapes[name], f"[{place}]", (name,))


def _wrong_names(combined: dict[str, object], dynamic_shapes: dict) -> str:
    text = (
        "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names "
        f"{list(combined)} of `inputs`, but here they are {list(dynamic_shapes)}. "
    )
    values = list(combined.values())
    if len(values) == 1 and isinstance(values[0], dict) and list(values[0]) == list(dynamic_shapes):
        return (
            text + "Since here `inputs` is a list/tuple enclosing a single dict, maybe you just "
            "forgot to enclose `dynamic_shapes` in a list/tuple?"
        )
    return (
        text + "Alternatively, you could also ignore arg names entirely and specify "
        "`dynamic_shapes` as a list/tuple matching `inputs`."
    )


def _mismatch(path: str, inputs: str, shapes: str) -> Exception:
    return _user_error(
        "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: "
        f"`inputs{path}` {inputs}, but `dynamic_shapes{path}` {shapes}"
    )


def _match(value: object, shape: object, text: str, path: tuple) -> Iterator[SizeSpec]:
    if isinstance(value, torch.Tensor):
        yield SizeSpec(path, value, _tensor_dims(value, shape, text))
    elif pytree.tree_is_leaf(value):
        if shape is not None:
            yield SizeSpec(path, value, [_number_dim(value, shape, text)])
    else:
        node = pytree.SUPPORTED_NODES[pytree._get_node_type(value)]
        keyed, _ = node.flatten_with_keys_fn(value)
        for (key, child), part in zip(keyed, _children(value, shape, keyed, text), strict=True):
            yield from _match(child, part, f"{text}{key}", (*path, key))


def _children(value: object, shape: object, keyed: list, text: str) -> list[object]:
    """What a description says of the parts of a container."""
    if shape is None:
        return [None] * len(keyed)
    if not isinstance(shape, (list, tuple, dict)) and type(shape) is not type(value):
        raise _mismatch(text, f"is a {type(value)}", "is not")
    if isinstance(value, (list, tuple, dict)) and type(shape) is not type(value):
        same = isinstance(value, dict) and isinstance(shape, dict)
        if not same:
            raise _mismatch(text, f"is a {type(value)}", f"is a {type(shape)}")
    if isinstance(shape, dict) and isinstance(value, dict):
        if set(shape) != set(value):
            raise _mismatch(text, f"has keys {list(value)}", f"has keys {list(shape)}")
        return [shape[key.key] for key, _ in keyed]
    if isinstance(shape, dict):
        names = [str(getattr(key, "name", key)) for key, _ in keyed]
        return [shape[name] for name in names]
    parts = list(shape) if isinstance(shape, (list, tuple)) else _parts(shape)
    if len(parts) != len(keyed):
        raise _mismatch(text, f"has {len(keyed)} elements", f"has {len(parts)} elements")
    return parts


def _parts(shape: object) -> list[object]:
    return list(pytree.SUPPORTED_NODES[type(shape)].flatten_fn(shape)[0])


_EXPECTED_DIMS = "where each dimension is an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC"


def _tensor_dims(tensor: torch.Tensor, shape: object, text: str) -> list[object]:
    ndim = tensor.dim()
    if shape is None:
        return [None] * ndim
    if isinstance(shape, dict):
        found: list[object] = [None] * ndim
        for place, dim in shape.items():
            if type(place) is not int:
                raise _user_error(
                    f"Unexpected dimension {place!r} in input tensor shape {shape} specified at "
                    f"`dynamic_shapes{text}` (expected an integer index)"
                )
            if not 0 <= place < max(ndim, 1):
                raise _user_error(
                    f"Expected dynamic shape spec {shape} specified at `dynamic_shapes{text}` to "
                    f"name dimensions of the actual tensor shape {tuple(tensor.shape)}, but got "
                    f"{place}"
                )
            found[place] = dim
    elif isinstance(shape, (list, tuple)):
        if len(shape) != ndim:
            raise _user_error(
                f"Expected dynamic shape spec {shape} specified at `dynamic_shapes{text}` to have "
                f"the same length as the actual tensor shape {tensor.shape} (expected {ndim}, but "
                f"got {len(shape)} instead)"
            )
        found = list(shape)
    else:
        raise _user_error(
            f"Unexpected input tensor shape {shape} specified at `dynamic_shapes{text}` (expected "
            f"either a list/tuple of dimensions, or a dict mapping indices to dimensions, "
            f"{_EXPECTED_DIMS})"
        )
    for place, dim in enumerate(found):
        if dim is not None and not isinstance(dim, (int, Dim, _DimHint)):
            raise _user_error(
                f"Unexpected dimension mapped to index {place} in input tensor shape {shape} "
                f"specified at `dynamic_shapes{text}` (expected None, an int, a Dim, Dim.AUTO, "
                f"Dim.STATIC, or Dim.DYNAMIC,  but got {dim!r} instead)"
            )
    return found


def _number_dim(value: object, shape: object, text: str) -> object:
    if isinstance(value, (int, torch.SymInt)) and isinstance(shape, (_DimHint, Dim, int)):
        return shape
    raise _user_error(
        f"Cannot associate shape {shape} specified at `dynamic_shapes{text}` to non-tensor type "
        f"{type(value)} at `inputs{text}` (expected None)"
    )


def check_definitions(specs: Sequence[SizeSpec]) -> None:
    """One name, one definition."""
    known: dict[str, Dim] = {}
    for spec in specs:
        for dim in spec.dims:
            if not isinstance(dim, Dim):
                continue
            root = dim._root()
            first = known.setdefault(root.__name__, root)
            if (first.min, first.max) != (root.min, root.max):
                raise _user_error(
                    f"Found different definitions {first!r} and {root!r} for the same symbolic "
                    f"dimension {root.__name__!r}!"
                )


# ---- other ways to describe sizes


class ShapesCollection:
    """Sizes by tensor: `collection[tensor] = {0: dim}`, and of integers that are wrapped."""

    def __init__(self) -> None:
        self._shapes: dict[int, object] = {}
        self._kept: list[object] = []

    def __setitem__(self, t: torch.Tensor, shape: object) -> None:
        if not isinstance(t, (torch.Tensor, _IntWrapper)):
            raise AssertionError(
                f"Cannot assign shape to non-tensor or non-_IntWrapper type {type(t)}"
            )
        if id(t) in self._shapes and self._shapes[id(t)] != shape:
            raise AssertionError(
                f"Shapes assigned to tensor do not match: expected {self._shapes[id(t)]}, got "
                f"{shape}"
            )
        self._shapes[id(t)] = shape
        self._kept.append(t)

    def __getitem__(self, t: torch.Tensor) -> object:
        return self._shapes.setdefault(id(t), {})

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(
        self,
        m: Callable[..., object],
        args: tuple[object, ...],
        kwargs: dict[str, object] | None = None,
    ) -> dict[str, object]:
        """The description of the inputs of m."""
        seen: set[int] = set()

        def found(leaf: object) -> object:
            if id(leaf) in self._shapes:
                seen.add(id(leaf))
                return self._shapes[id(leaf)]
            return None

        shapes = pytree.tree_map(found, _combine_args(m, args, kwargs))
        if len(seen) != len(self._shapes):
            raise ValueError(
                "Some tensors that were assigned shapes were not found in args. Maybe such tensors "
                "were copied when passing them as args? Maybe such tensors are contained in "
                "classes that were not registered with pytree?"
            )
        return shapes


@dataclasses.dataclass
class _IntWrapper:
    """An integer input that a ShapesCollection can name."""

    val: int
    dynamism: _DimHint | int | None = dataclasses.field(init=False, default=None)


class AdditionalInputs:
    """More example inputs, from which follows what varies: a size that differs is dynamic, one that
    is the same everywhere is static."""

    def __init__(self) -> None:
        self._examples: list[tuple[tuple, dict]] = []

    def add(self, args: tuple[object, ...], kwargs: dict[str, object] | None = None) -> None:
        """One more example."""
        if not isinstance(args, tuple):
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and not isinstance(kwargs, dict):
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(
        self,
        m: Callable[..., object],
        args: tuple[object, ...],
        kwargs: dict[str, object] | None = None,
    ) -> dict[str, object]:
        """The description of the inputs of m."""
        first = _combine_args(m, args, kwargs)
        others = [_combine_args(m, *example) for example in self._examples]

        def varies(leaf: object, *rest: object) -> object:
            if isinstance(leaf, torch.Tensor):
                columns = zip(leaf.shape, *(r.shape for r in rest), strict=True)
                return tuple(Dim.DYNAMIC if len(set(c)) > 1 else None for c in columns)
            if type(leaf) is int:
                return Dim.DYNAMIC if len({leaf, *rest}) > 1 else None
            if any(type(r) is not type(leaf) or r != leaf for r in rest):
                raise ValueError(
                    f"Inputs that are neither tensors nor integers must be equal in all examples, "
                    f"got {[leaf, *rest]}"
                )
            return None

        return pytree.tree_map(varies, first, *others)

    def verify(self, ep: torch.export.ExportedProgram) -> None:
        """Runs the exported program on every example."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **kwargs)


# ---- fixes


def refine_dynamic_shapes_from_suggested_fixes(
    msg: str, dynamic_shapes: dict | tuple | list
) -> dict | tuple | list:
    """The description with the fixes applied that the text of an error suggests."""
    marker = "Suggested fixes:"
    if marker not in msg:
        raise ValueError("the text suggests no fixes")
    fixes: dict[str, object] = {}
    for line in msg.split(marker, 1)[1].splitlines():
        name, sign, text = (part.strip() for part in line.partition(" = "))
        if sign and name.isidentifier():
            fixes[name] = _read_fix(text, fixes)
    roots: dict[str, Dim] = {}

    def applied(leaf: object) -> object:
        if not isinstance(leaf, Dim) or isinstance(leaf, _StaticDim):
            return leaf
        if leaf.__name__ in fixes:
            return fixes[leaf.__name__]
        root = leaf._root()
        if root.__name__ not in fixes:
            return leaf
        fixed = fixes[root.__name__]
        roots[root.__name__] = fixed
        return fixed if leaf is root else fixed * leaf.scale + leaf.offset

    return pytree.tree_map(applied, dynamic_shapes)


def _read_fix(text: str, known: dict[str, object]) -> object:
    """`Dim('x', min=2, max=5)`, `7`, `2*x + 1` or `x`, read without running it."""
    import ast

    tree = ast.parse(text, mode="eval").body
    if isinstance(tree, ast.Call) and getattr(tree.func, "id", None) == "Dim":
        bounds = {k.arg: ast.literal_eval(k.value) for k in tree.keywords}
        return Dim(ast.literal_eval(tree.args[0]), **bounds)
    return _read_linear(tree, known)


def _read_linear(tree: object, known: dict[str, object]) -> object:
    import ast

    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if isinstance(tree, ast.Name):
        return known.setdefault(tree.id, Dim(tree.id))
    if isinstance(tree, ast.BinOp):
        left, right = _read_linear(tree.left, known), _read_linear(tree.right, known)
        if isinstance(tree.op, ast.Add):
            return left + right
        if isinstance(tree.op, ast.Sub):
            return left - right
        if isinstance(tree.op, ast.Mult):
            return left * right
    raise ValueError(f"no size: {ast.unparse(tree)}")
