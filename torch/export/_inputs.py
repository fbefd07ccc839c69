"""The inputs of a program as tensors without data, with symbols for the sizes that may vary. Sizes
that the user declared equal, or to be expressions of others, share symbols from the beginning, so
that nothing has to be proven about them later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.utils._pytree as pytree
from torch._dynamo.source import (
    AttrSource,
    ConstantSource,
    GetItemSource,
    LocalSource,
    TensorProperty,
    TensorPropertySource,
)
from torch._guards import Source, detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export import dynamic_shapes as shapes
from torch.export.dynamic_shapes import Dim, _DerivedDim, _DimHint, _DimHintType
from torch.fx.experimental.symbolic_shapes import (
    ConstraintViolationError,
    DimDynamic,
    ShapeEnv,
    StatefulSymbolicContext,
)

__all__ = ["DimUse", "FakeInputs", "fake_inputs", "fake_mode_for"]


class DimUse(NamedTuple):
    """A size that the user said something about: where it is, what it was, what it became."""

    dim: Dim | _DimHint
    source: Source
    value: int
    node: object  # the symbolic node, a constant where the size is fixed

    @property
    def text(self) -> str:
        """L['x'].size()[0]"""
        return self.source.name()


class FakeInputs(NamedTuple):
    """The leaves of (args, kwargs) without data."""

    mode: FakeTensorMode
    leaves: list[object]
    uses: list[DimUse]
    roots: dict[str, object]  # symbolic nodes of Dims by name


def fake_mode_for(values: Sequence[object]) -> FakeTensorMode:
    """The mode that values belong to already, or a new one with a shape environment."""
    mode = detect_fake_mode(values)
    if mode is None:
        return FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True, export=True)
    if mode.shape_env is None:
        mode.shape_env = ShapeEnv()
        mode.static_shapes = False
    return mode


def _source(path: tuple) -> Source:
    """Where a leaf is: L['x'][0]['k']"""
    source: Source = LocalSource(path[0])
    for key in path[1:]:
        if isinstance(key, pytree.GetAttrKey):
            source = AttrSource(source, key.name)
        elif isinstance(key, pytree.SequenceKey):
            source = GetItemSource(source, key.idx)
        else:
            source = GetItemSource(source, getattr(key, "key", str(key)))
    return source


class _Builder:
    """Makes the symbols: first those of named sizes, then expressions of them."""

    def __init__(self, env: ShapeEnv) -> None:
        self.env = env
        self.roots: dict[str, object] = {}
        self.uses: list[DimUse] = []

    def declare(self, spec: shapes.SizeSpec) -> None:
        """Makes symbols for the Dims that a spec names themselves."""
        for place, value, dim in self._entries(spec):
            if not isinstance(dim, Dim) or isinstance(dim, _DerivedDim):
                continue
            if dim.__name__ in self.roots:
                continue
            if not dim.min <= value <= dim.max:
                raise ConstraintViolationError(
                    f"Expected input at {place.name()} = {value} to lie in the range of "
                    f"{dim.__name__}: {value} not in range [{dim.min}, {dim.max}]"
                )
            self.roots[dim.__name__] = self._symbol(value, place, dim.min, dim.max)

    def _entries(self, spec: shapes.SizeSpec) -> list[tuple[Source, int, object]]:
        source = _source(spec.path)
        if not isinstance(spec.value, torch.Tensor):
            return [(source, spec.value, spec.dims[0])]
        return [
            (TensorPropertySource(source, TensorProperty.SIZE, i), size, dim)
            for i, (size, dim) in enumerate(zip(spec.value.shape, spec.dims, strict=True))
        ]

    def _symbol(self, value: int, place: Source, low: int | None, high: object) -> object:
        node = self.env._backed_node(value, place, DimDynamic.DYNAMIC, None, True, True)
        if not node.is_constant():
            bounds = [b if isinstance(b, int) else None for b in (low, high)]
            if bounds[0] is not None and bounds[0] <= 2:
                bounds[0] = None
            if bounds != [None, None]:
                self.env._constrain(node, *bounds)
        return node

    def node(self, place: Source, value: int, dim: object) -> object:
        """The symbolic node of a size."""
        if dim is None or (isinstance(dim, _DimHint) and dim.type is _DimHintType.STATIC):
            return self.env._constant(value)
        if isinstance(dim, int):
            if dim != value:
                raise ConstraintViolationError(
                    f"Static shape constraint of {dim} does not match input size of {value}, for "
                    f"{place.name()}"
                )
            return self.env._constant(value)
        if isinstance(dim, _DimHint):
            made = self._symbol(value, place, dim.min, dim.max)
        elif isinstance(dim, _DerivedDim):
            made = self._derived(place, value, dim)
        else:
            made = self._named(place, value, dim)
        self.uses.append(DimUse(dim, place, value, made))
        return made

    def _named(self, place: Source, value: int, dim: Dim) -> object:
        made = self.roots[dim.__name__]
        first = made.hint if not made.is_constant() else made.maybe_as_int()
        if first != value:
            place_first = next(u for u in self.uses if u.dim.__name__ == dim.__name__)
            raise shapes._user_error(
                f"{place.name()} = {value} is not equal to {place_first.text} = {first}"
            )
        if not made.is_constant():
            self.env._add_source(made, place)
        return made

    def _derived(self, place: Source, value: int, dim: _DerivedDim) -> object:
        root = dim.root
        if root.__name__ not in self.roots:
            whole, rest = divmod(value - dim.offset, dim.scale)
            if rest:
                raise shapes._user_error(
                    f"Expected shape[{place.idx}] = {value} of input Tensor to be of the form "
                    f"{dim.__name__}, where {root.__name__} is an integer"
                )
            self.roots[root.__name__] = self._symbol(
                whole, ConstantSource(f"{root.__name__}"), root.min, root.max
            )
        node = self.roots[root.__name__]
        made = node.mul(self.env._constant(dim.scale)).add(self.env._constant(dim.offset))
        known = node.hint if not node.is_constant() else node.maybe_as_int()
        if dim.scale * known + dim.offset != value:
            raise shapes._user_error(
                f"Expected input {place.name()} to be equal to {dim.__name__}, where "
                f"{root.__name__} = {known}, but got {value}"
            )
        return made

    def context(self, spec: shapes.SizeSpec) -> StatefulSymbolicContext:
        """What tells the converter of tensors which symbols to use."""
        source = _source(spec.path)
        known = {
            place.name(): self.node(place, size, dim) for place, size, dim in self._entries(spec)
        }
        # An offset into a storage is a fact of the example, not of the program.
        offset = TensorPropertySource(source, TensorProperty.STORAGE_OFFSET)
        known[offset.name()] = self.env._constant(int(spec.value.storage_offset()))
        return StatefulSymbolicContext(
            dynamic_sizes=[DimDynamic.STATIC] * spec.value.dim(),
            tensor_source=source,
            shape_env_to_source_to_symbol_cache={id(self.env): known},
        )


def fake_inputs(
    f: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    dynamic_shapes: dict | tuple | list | None,
    mode: FakeTensorMode,
) -> FakeInputs:
    """Makes the inputs of f without data."""
    builder = _Builder(mode.shape_env)
    combined = shapes._combine_args(f, args, kwargs)
    specs = list(shapes.match(combined, dynamic_shapes))
    shapes.check_definitions(specs)
    for spec in specs:
        builder.declare(spec)
    by_path = {spec.path: spec for spec in specs}
    seen: set[int] = set()
    leaves = []
    paths = shapes.input_paths(f, args, kwargs)
    for path, leaf in zip(paths, pytree.tree_leaves((args, kwargs)), strict=True):
        spec = by_path.get(path)
        if isinstance(leaf, torch.Tensor):
            value = leaf.detach().requires_grad_(leaf.requires_grad) if id(leaf) in seen else leaf
            seen.add(id(leaf))
            leaves.append(_fake(value, path, spec, builder, mode))
        elif spec is not None:
            leaves.append(_number(builder.node(_source(path), leaf, spec.dims[0])))
        else:
            leaves.append(leaf)
    return FakeInputs(mode, leaves, builder.uses, builder.roots)


def _number(node: object) -> int | torch.SymInt:
    plain = node.maybe_as_int()
    return torch.SymInt(node) if plain is None else plain


def _fake(
    leaf: torch.Tensor,
    path: tuple,
    spec: shapes.SizeSpec,
    builder: _Builder,
    mode: FakeTensorMode,
) -> torch.Tensor:
    if isinstance(leaf, FakeTensor) and mode.is_our_fake(leaf):
        return leaf
    if all(dim is None for dim in spec.dims) or type(leaf) not in (
        torch.Tensor,
        torch.nn.Parameter,
    ):
        return mode.from_tensor(leaf, static_shapes=True)
    return mode.from_tensor(leaf, source=_source(path), symbolic_context=builder.context(spec))
