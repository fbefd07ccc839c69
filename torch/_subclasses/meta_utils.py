"""Tensors on the meta device in the image of real ones: same geometry, the same sharing of memory
and views, the same place in the graph (leaf or not, gradient or not), and no data. A converter
remembers what it has converted, by weak references, so that two views of one tensor become two
views of one meta tensor."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch.utils.weak import WeakIdKeyDictionary, WeakIdRef

if TYPE_CHECKING:
    from torch._guards import Source
    from torch.fx.experimental.symbolic_shapes import ShapeEnv, SymbolicContext

__all__ = ["MetaConverter", "assert_metadata_eq", "is_sparse_any", "safe_is_leaf"]

_ABOVE_META = torch._C.DispatchKeySet(torch._C.DispatchKey.Fake) | torch._C.DispatchKeySet(
    torch._C.DispatchKey.Python
)
_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


@contextlib.contextmanager
def _outside_of_transforms() -> Iterator[None]:
    """A block that no function transform sees: an image belongs to the program, not to a level."""
    active = torch._C._are_functorch_transforms_active()
    scope = torch._C._functorch._set_levels_aside() if active else None
    try:
        yield
    finally:
        del scope


def is_sparse_coo(t: object) -> bool:
    """Whether t is a tensor in coordinate layout."""
    return isinstance(t, torch.Tensor) and t.layout is torch.sparse_coo


def is_sparse_compressed_layout(layout: torch.layout) -> bool:
    """Whether a layout is CSR, CSC, BSR or BSC."""
    return layout in _COMPRESSED


def is_sparse_compressed(t: object) -> bool:
    """Whether t is a tensor in CSR, CSC, BSR or BSC layout."""
    return isinstance(t, torch.Tensor) and t.layout in _COMPRESSED


def is_sparse_any(t: object) -> bool:
    """Whether t is a tensor in any sparse layout."""
    return is_sparse_coo(t) or is_sparse_compressed(t)


def safe_is_leaf(t: torch.Tensor) -> bool:
    """t.is_leaf; True where the question itself fails."""
    try:
        return t.is_leaf
    except RuntimeError:
        return True


def assert_metadata_eq(
    assert_eq: Callable[[object, object], None],
    m1: torch.Tensor,
    m2: torch.Tensor,
    *,
    skip_symbolic: bool = False,
    skip_leaf: bool = False,
) -> None:
    """Calls assert_eq on each pair of properties that a tensor and its meta image share."""
    assert_eq(m1.dtype, m2.dtype)
    if not skip_symbolic:
        assert_eq(m1.shape, m2.shape)
    assert_eq(m1.requires_grad, m2.requires_grad)
    if not skip_leaf:
        assert_eq(m1.is_leaf, m2.is_leaf)
    grads = [m.grad if m.is_leaf else None for m in (m1, m2)]  # of others it is not asked for
    assert_eq(grads[0] is None, grads[1] is None)
    if grads[0] is not None and grads[1] is not None:
        assert_metadata_eq(assert_eq, *grads, skip_symbolic=skip_symbolic)
    assert_eq(m1.layout, m2.layout)
    assert_eq(m1.is_inference(), m2.is_inference())
    assert_eq(m1.is_conj(), m2.is_conj())
    assert_eq(m1.is_neg(), m2.is_neg())
    if not is_sparse_any(m1) and not skip_symbolic:
        assert_eq(m1.stride(), m2.stride())
        assert_eq(m1.storage_offset(), m2.storage_offset())
    assert_eq(m1._is_view(), m2._is_view())
    if m1._is_view():
        assert_metadata_eq(
            assert_eq, m1._base, m2._base, skip_symbolic=skip_symbolic, skip_leaf=skip_leaf
        )


class MetaTensorDescriber:
    """Numbers tensors and storages for as long as they live."""

    def __init__(self) -> None:
        self.lookup_tensor = WeakIdKeyDictionary()
        self.lookup_storage: dict[int, int] = {}
        self._users: dict[int, set[WeakIdRef]] = {}
        self._next = 0

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def get_tensor_id(self, t: torch.Tensor) -> int:
        """The number of a tensor."""
        if t not in self.lookup_tensor:
            self.lookup_tensor[t] = self._number()
        return self.lookup_tensor[t]

    def get_storage_id(self, t: torch.Tensor) -> int:
        """The number of the storage of a tensor; it is forgotten with the last tensor asked for."""
        key = t.untyped_storage()._cdata
        if key not in self.lookup_storage:
            self.lookup_storage[key] = self._number()
            self._users[key] = set()
        this = weakref.ref(self)

        def forget(ref: WeakIdRef) -> None:
            owner = this()
            users = owner._users.get(key) if owner is not None else None
            if users is None:
                return
            users.discard(ref)
            if not users:
                del owner._users[key], owner.lookup_storage[key]

        self._users[key].add(WeakIdRef(t, forget))
        return self.lookup_storage[key]


class _Symbols:
    """How the sizes of a tensor that is converted become symbols."""

    def __init__(
        self,
        shape_env: ShapeEnv | None,
        source: Source | None,
        context: SymbolicContext | None,
    ) -> None:
        self.shape_env, self.source, self.context = shape_env, source, context

    def geometry(self, t: torch.Tensor) -> tuple[Sequence[int], Sequence[int], int]:
        """Sizes, strides and offset of the image of t."""
        if self.shape_env is None:
            return t.size(), t.stride(), t.storage_offset()
        return self.shape_env.create_symbolic_sizes_strides_storage_offset(
            t, self._source(), symbolic_context=self.context
        )

    def _source(self) -> Source:
        if self.source is None:
            from torch._dynamo.source import ConstantSource

            count = len(self.shape_env.var_to_val)
            return ConstantSource(f"__meta_utils_unknown_tensor{count}")
        return self.source

    def of_base(self) -> _Symbols:
        """The same for the tensor that a view is of."""
        if self.shape_env is None:
            return self
        from torch._dynamo.source import AttrSource

        context = getattr(self.context, "view_base_context", None)
        return _Symbols(self.shape_env, AttrSource(self._source(), "_base"), context)

    def of_grad(self) -> _Symbols:
        """The same for a tensor's gradient, which has its sizes."""
        if self.shape_env is None:
            return self
        from torch._dynamo.source import AttrSource

        return _Symbols(self.shape_env, AttrSource(self._source(), "grad"), self.context)


class MetaConverter:
    """`MetaConverter()(t)` is the meta image of t. What is not a tensor is returned as it is; a
    tensor of a kind that has no meta form is too, and counts as a miss."""

    def __init__(self, *, copy_data: bool = False) -> None:
        self.copy_data = copy_data
        self.describer = MetaTensorDescriber()
        self.tensor_memo: weakref.WeakValueDictionary[int, torch.Tensor] = (
            weakref.WeakValueDictionary()
        )
        self.storage_memo: weakref.WeakValueDictionary[int, torch.UntypedStorage] = (
            weakref.WeakValueDictionary()
        )
        self._held = WeakIdKeyDictionary()  # meta tensor: its storage
        self._symbols = _Symbols(None, None, None)  # of the conversion under way
        self.hit = 0
        self.miss = 0

    def successful(self) -> bool:
        """Whether something was converted and nothing had to stay as it was."""
        return self.hit > 0 and self.miss == 0

    def __call__(
        self,
        t: object,
        shape_env: ShapeEnv | None = None,
        *,
        source: Source | None = None,
        symbolic_context: SymbolicContext | None = None,
    ) -> object:
        """The meta image of t."""
        if not isinstance(t, torch.Tensor):
            return t
        if is_sparse_any(t) or t.is_nested or t.is_quantized or t.is_mkldnn:
            self.miss += 1
            return t
        self.hit += 1
        before, self._symbols = self._symbols, _Symbols(shape_env, source, symbolic_context)
        try:
            return self._image(t)
        finally:
            self._symbols = before

    def _image(self, t: torch.Tensor) -> torch.Tensor:
        number = self.describer.get_tensor_id(t)
        if number in self.tensor_memo:
            return self.tensor_memo[number]
        with _outside_of_transforms(), torch._C.DisableTorchFunction():
            made = self._view_image(t) if t._is_view() else self._own_image(t)
            if t.is_leaf and t.grad is not None:
                made.grad = self._with(self._symbols.of_grad(), t.grad)
        self.tensor_memo[number] = made
        return made

    def _with(self, symbols: _Symbols, t: torch.Tensor) -> torch.Tensor:
        before, self._symbols = self._symbols, symbols
        try:
            return self._image(t)
        finally:
            self._symbols = before

    # ---- tensors with memory of their own

    def _on_storage(self, t: torch.Tensor) -> torch.Tensor:
        """A tensor without history in t's geometry on the image of t's storage."""
        number = self.describer.get_storage_id(t)
        held = self.storage_memo.get(number)
        if held is None:
            held = torch.UntypedStorage(t.untyped_storage().nbytes(), device="meta")
            self.storage_memo[number] = held
        with torch.no_grad(), torch._C._ExcludeDispatchKeyGuard(_ABOVE_META):
            geometry = self._symbols.geometry(t)
            if any(isinstance(n, torch.SymInt) for n in (*geometry[0], *geometry[1], geometry[2])):
                made = torch._C._make_symbolic_meta(*geometry, t.dtype)
            else:
                made = torch.empty(0, dtype=t.dtype, device="meta")
                made.set_(held, geometry[2], geometry[0], geometry[1])
        made = self._finish(made, t)
        self._held[made] = held
        return made

    def _finish(self, made: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        """What stands for t, from a meta tensor in its geometry."""
        return made

    def _own_image(self, t: torch.Tensor) -> torch.Tensor:
        made = self._on_storage(t)
        if t.is_leaf:
            made.requires_grad_(t.requires_grad)
        elif t.requires_grad:
            source = torch.empty_like(made).requires_grad_()
            with torch.enable_grad():
                made.copy_(source)
        if isinstance(t, torch.nn.Parameter):
            made._is_param = True
        return _with_bits(made, t)

    # ---- views

    def _view_image(self, t: torch.Tensor) -> torch.Tensor:
        base = self._with(self._symbols.of_base(), t._base)
        geometry = self._symbols.geometry(t)
        has_history = t.requires_grad and not t.is_leaf
        if has_history and not base.requires_grad:
            # A view of a view that was made a leaf.
            with torch.no_grad():
                base = _viewed(base, t, geometry)
            base.requires_grad_()
        with torch.set_grad_enabled(has_history):
            made = _with_bits(_viewed(base, t, geometry), t)
        if t.is_leaf and t.requires_grad:
            made.requires_grad_()
        return made


def _viewed(
    base: torch.Tensor, t: torch.Tensor, geometry: tuple[Sequence[int], Sequence[int], int]
) -> torch.Tensor:
    """A view of base with t's dtype and a geometry."""
    if base.dtype != t.dtype:
        if base.is_complex() and not t.is_complex() and base.dtype.to_real() == t.dtype:
            base = torch.view_as_real(base)
        else:
            count = base.untyped_storage().nbytes() // base.element_size()
            base = base.as_strided((count,), (1,), 0).view(t.dtype)
    return base.as_strided(*geometry)


def _with_bits(made: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """The lazy conjugate and negative bits of t on its image."""
    if t.is_conj() and not made.is_conj():
        made = torch._conj(made)
    if t.is_neg() and not made.is_neg():
        made = torch._neg_view(made)
    return made
