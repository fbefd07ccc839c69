"""What a tensor says about itself, as operators; and functional forms of operators that change a
tensor's memory or draw into it."""

import torch
from torch import Tensor
from torch._composed_ops.registry import composed, define, define_out, on_copies

_QUESTIONS = {
    "is_leaf(Tensor self) -> bool": lambda self: self.is_leaf,
    "data(Tensor self) -> Tensor": lambda self: self.data,
    "output_nr(Tensor self) -> int": lambda self: self.output_nr,
    "retains_grad(Tensor self) -> bool": lambda self: self.retains_grad,
    "_version(Tensor self) -> int": lambda self: self._version,
    "is_nonzero(Tensor self) -> bool": lambda self: bool(self),
    "get_device(Tensor self) -> int": Tensor.get_device,
    "is_set_to(Tensor self, Tensor tensor) -> bool": Tensor.is_set_to,
}


def _define_questions() -> None:
    for schema, function in _QUESTIONS.items():
        define(schema, function)


_define_questions()


@composed("sym_size(Tensor self) -> SymInt[]")
def sym_size(self: Tensor) -> list[int]:
    return list(self.shape)


@composed("sym_stride(Tensor self) -> SymInt[]")
def sym_stride(self: Tensor) -> list[int]:
    return list(self.stride())


@composed("requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)")
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    return self.requires_grad_(requires_grad)


@composed("retain_grad(Tensor(a!) self) -> ()")
def retain_grad(self: Tensor) -> None:
    self.retain_grad()


@composed("set_data(Tensor(a!) self, Tensor new_data) -> ()")
def set_data(self: Tensor, new_data: Tensor) -> None:
    self.data = new_data


@composed(
    "_backward(Tensor self, Tensor[] inputs, Tensor? gradient=None, bool? retain_graph=None, "
    "bool create_graph=False) -> ()"
)
def _backward(
    self: Tensor,
    inputs: list[Tensor],
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> None:
    torch.autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs or None)


@composed("_debug_has_internal_overlap(Tensor self) -> int")
def _debug_has_internal_overlap(self: Tensor) -> int:
    """0: elements lie apart; 1: some share a place; 2: not known without a search."""
    steps = sorted(
        (stride, size) for size, stride in zip(self.shape, self.stride(), strict=True) if size != 1
    )
    if any(stride == 0 for stride, _ in steps):
        return 1
    reach = 0
    for stride, size in steps:
        if stride <= reach:
            return 2
        reach += stride * (size - 1)
    return 0


@composed("_has_compatible_shallow_copy_type(Tensor self, Tensor from) -> bool")
def _has_compatible_shallow_copy_type(self: Tensor, source: Tensor) -> bool:
    return self.layout == source.layout


# ---- memory

_SET = (
    ("set(Tensor self) -> Tensor", "out"),
    ("set.source_Storage(Tensor self, Storage source) -> Tensor", "source_Storage_out"),
    (
        "set.source_Storage_storage_offset(Tensor self, Storage source, SymInt storage_offset, "
        "SymInt[] size, SymInt[] stride=[]) -> Tensor",
        "source_Storage_storage_offset_out",
    ),
    ("set.source_Tensor(Tensor self, Tensor source) -> Tensor", "source_Tensor_out"),
)
_RESIZED = (
    (
        "resize(Tensor self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor",
        "resize_",
    ),
    (
        "resize_as(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) "
        "-> Tensor",
        "resize_as_",
    ),
    ("random(Tensor self, *, Generator? generator=None) -> Tensor", "random_"),
    ("random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor", "random_"),
    (
        "random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor",
        "random_",
    ),
    (
        "sparse_resize(Tensor self, int[] size, int sparse_dim, int dense_dim) -> Tensor",
        "sparse_resize_",
    ),
    (
        "sparse_resize_and_clear(Tensor self, int[] size, int sparse_dim, int dense_dim) -> Tensor",
        "sparse_resize_and_clear_",
    ),
    ("resize_as_sparse(Tensor self, Tensor the_template) -> Tensor", "resize_as_sparse_"),
    ("_coalesced(Tensor self, bool coalesced) -> Tensor", "_coalesced_"),
)


def _set_copy(self: Tensor, *source: object) -> Tensor:
    """A new tensor over the given memory: `self` lends only its kind."""
    empty = self.new_empty(0)
    return empty.set_(*source) if source else empty.set_()


def _define_functional_forms() -> None:
    for schema, overload in _SET:
        define(schema, _set_copy)
        define_out(schema, overload, _set_copy)
    for schema, inplace in _RESIZED:
        name = schema.partition("(")[0]
        function = on_copies(getattr(torch.ops.aten, inplace), 0)
        define(schema, function)
        if "spars" not in name and name != "_coalesced":
            overload = name.partition(".")[2]
            define_out(schema, f"{overload}_out" if overload else "out", function)


_define_functional_forms()


@composed(
    "set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, "
    "SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)"
)
def set_part_(
    self: Tensor, source: Tensor, offset: int, size: list[int], stride: list[int] | None = None
) -> Tensor:
    return self.set_(source.untyped_storage(), offset, size, stride or [])


@composed("_resize_output_(Tensor(a!) self, SymInt[] size, Device device) -> Tensor(a!)")
def _resize_output_(self: Tensor, size: list[int], device: torch.device) -> Tensor:
    if self.device != torch.device(device):
        raise RuntimeError(
            f"_resize_output_: expected a tensor on {device}, but got one on {self.device}"
        )
    return self if list(self.shape) == list(size) else self.resize_(size)


@composed("_resize_output(Tensor self, SymInt[] size, Device device) -> Tensor", out="out")
def _resize_output(self: Tensor, size: list[int], device: torch.device) -> Tensor:
    return _resize_output_(self.clone(), size, device)


@composed(
    "_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, "
    "bool unsafe=False) -> Tensor",
    out="out",
)
def _index_put_impl(
    self: Tensor,
    indices: list[Tensor | None],
    values: Tensor,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Tensor:
    return torch.ops.aten._index_put_impl_(self.clone(), indices, values, accumulate, unsafe)


@composed("record_stream(Tensor(a!) self, Stream s) -> ()")
def record_stream(self: Tensor, s: torch.Stream) -> None:
    self.record_stream(s)
