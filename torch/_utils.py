"""What unpickling a tensor calls. The names and the arguments are part of the file format:
checkpoints hold them."""

from __future__ import annotations

import torch


def _rebuild_tensor(storage, storage_offset, size, stride) -> torch.Tensor:
    """A strided tensor on a storage of either kind."""
    untyped = getattr(storage, "_untyped_storage", storage)
    dtype = getattr(storage, "dtype", torch.uint8)
    tensor = torch.empty((0,), dtype=dtype, device=untyped.device)
    return tensor.set_(untyped, storage_offset, size, stride)


def get_tensor_metadata(tensor) -> dict[str, bool]:
    """The flags of a tensor that are not in its geometry."""
    return {name: True for name in ("conj", "neg") if getattr(tensor, "is_" + name)()}


def set_tensor_metadata(tensor, metadata) -> torch.Tensor:
    """The tensor with the flags in `metadata` set."""
    if metadata.get("conj"):
        tensor = tensor.conj()
    if metadata.get("neg"):
        tensor = torch._neg_view(tensor)
    return tensor


def _rebuild_tensor_v2(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None
) -> torch.Tensor:
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    if metadata:
        tensor = set_tensor_metadata(tensor, metadata)
    tensor.requires_grad = requires_grad
    if backward_hooks:
        tensor._backward_hooks = backward_hooks
    return tensor


def _rebuild_tensor_v3(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None
) -> torch.Tensor:
    untyped = getattr(storage, "_untyped_storage", storage)
    tensor = torch.empty((0,), dtype=dtype, device=untyped.device)
    tensor.set_(untyped, storage_offset, size, stride)
    if metadata:
        tensor = set_tensor_metadata(tensor, metadata)
    tensor.requires_grad = requires_grad
    if backward_hooks:
        tensor._backward_hooks = backward_hooks
    return tensor


# The plain dtype of the levels of quantized tensors that have bytes of their own.
_LEVELS = {torch.quint8: torch.uint8, torch.qint8: torch.int8, torch.qint32: torch.int32}


def _quantized_state(tensor, hooks) -> tuple[object, ...]:
    """The arguments of _rebuild_qtensor."""
    if tensor.qscheme() is torch.per_tensor_affine:
        quantizer = (torch.per_tensor_affine, tensor.q_scale(), tensor.q_zero_point())
    else:
        quantizer = (
            torch.per_channel_affine,
            tensor.q_per_channel_scales(),
            tensor.q_per_channel_zero_points(),
            tensor.q_per_channel_axis(),
        )
    storage = torch.storage._typed_for_pickling(tensor.untyped_storage(), tensor.dtype)
    place = (storage, tensor.storage_offset(), tuple(tensor.size()), tensor.stride())
    return (*place, quantizer, False, hooks)


def _rebuild_qtensor(
    storage, storage_offset, size, stride, quantizer_params, requires_grad, backward_hooks
) -> torch.Tensor:
    """A quantized tensor from the storage of its levels. Its memory is a copy, which the legacy
    format has to make later: a tensor without values stands for it until the storages are filled.
    Such tensors have no gradients; the last two arguments are part of the format."""
    from torch._serialization.deferred import is_deferring, when_filled

    place = (storage, storage_offset, size, stride)
    if not is_deferring():
        return _quantized_copy(*place, quantizer_params)
    made = torch._empty_affine_quantized(size, scale=1.0, zero_point=0, dtype=storage.dtype)
    when_filled(lambda: torch.utils.swap_tensors(made, _quantized_copy(*place, quantizer_params)))
    return made


def _quantized_copy(storage, storage_offset, size, stride, quantizer_params) -> torch.Tensor:
    scheme, *quantizer = quantizer_params
    if storage.dtype not in _LEVELS:
        return _rebuild_packed(storage, size, scheme, quantizer)
    levels = torch.empty(0, dtype=_LEVELS[storage.dtype])
    levels.set_(storage.untyped(), storage_offset, size, stride)
    if scheme is torch.per_tensor_affine:
        return torch._make_per_tensor_quantized_tensor(levels, *quantizer)
    return torch._make_per_channel_quantized_tensor(levels, *quantizer)


def _rebuild_packed(storage, size, scheme, quantizer) -> torch.Tensor:
    """The same for elements that share bytes, which are dense."""
    if scheme is torch.per_tensor_affine:
        make, names = torch._empty_affine_quantized, ("scale", "zero_point")
    else:
        make, names = torch._empty_per_channel_affine_quantized, ("scales", "zero_points", "axis")
    made = make(size, dtype=storage.dtype, **dict(zip(names, quantizer, strict=True)))
    memory = made.untyped_storage()
    if storage.untyped().nbytes() < memory.nbytes():
        raise RuntimeError(
            f"a quantized tensor of size {tuple(size)} and {storage.dtype} needs "
            f"{memory.nbytes()} bytes, the storage has {storage.untyped().nbytes()}"
        )
    memory.copy_(storage.untyped()[: memory.nbytes()])
    return made


def _rebuild_sparse_tensor(layout, data) -> torch.Tensor:
    from torch._serialization.deferred import when_filled

    if layout is torch.sparse_coo:
        parts, named = data[:3], {"is_coalesced": data[3] if len(data) > 3 else None}
        make, unchecked = torch.sparse_coo_tensor, torch._sparse_coo_tensor_unsafe
    else:
        parts, named = data, {"layout": layout}
        make, unchecked = torch.sparse_compressed_tensor, torch._sparse_compressed_tensor_unsafe
    when_filled(lambda: make(*parts, **named, check_invariants=True))
    return unchecked(*parts, **named)


def _rebuild_jagged_tensor(values, offsets, lengths, ragged_idx, requires_grad):
    """A nested tensor of the jagged layout. Its offsets are looked at when they have been read."""
    from torch._serialization.deferred import when_filled
    from torch.nested._jagged import NestedTensor
    from torch.nested._structure import Structure

    structure = Structure.of(offsets, lengths)
    if type(ragged_idx) is not int or not 1 <= ragged_idx <= values.dim():
        raise RuntimeError(
            f"a nested tensor of {values.dim()} dimensions of values has no "
            f"ragged dimension {ragged_idx}"
        )
    when_filled(lambda: structure.check_inside(values.size(ragged_idx - 1)))
    return NestedTensor(values, structure, ragged_idx).requires_grad_(requires_grad)


def _rebuild_strided_nested_tensor(values, sizes, requires_grad):
    """A nested tensor of the strided layout from its buffer and a row of sizes per component."""
    from torch._serialization.deferred import when_filled
    from torch.nested._strided import StridedNestedTensor

    if values.dim() != 1 or sizes.dim() != 2 or sizes.dtype != torch.int64:
        raise RuntimeError("a strided nested tensor needs a buffer and a matrix of sizes")
    made = StridedNestedTensor(values, ((),) * sizes.size(0))
    when_filled(lambda: made._set_sizes(sizes.tolist()))
    return made.requires_grad_(requires_grad)


def _rebuild_nested_tensor(buffer, sizes, strides, storage_offsets):
    """A nested tensor of the strided layout, as PyTorch describes it in files."""
    from torch._serialization.deferred import when_filled

    made = _rebuild_strided_nested_tensor(buffer, sizes, False)

    def check() -> None:
        own = made._nested_tensor_strides(), made._nested_tensor_storage_offsets()
        if not all(map(torch.equal, own, (strides, storage_offsets))):
            raise NotImplementedError(
                "a nested tensor whose components are not contiguous, one after the other"
            )

    when_filled(check)
    return made


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad) -> torch.Tensor:
    return torch.empty_strided(
        size, stride, dtype=dtype, device="meta", requires_grad=requires_grad
    )


def _rebuild_wrapper_subclass(
    cls, dtype, size, stride, storage_offset, layout, device, requires_grad
):
    return torch.Tensor._make_wrapper_subclass(
        cls,
        size,
        strides=stride,
        dtype=dtype,
        storage_offset=storage_offset,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def _rebuild_device_tensor_from_numpy(data, dtype, device, requires_grad):
    tensor = torch.from_numpy(data).to(dtype=dtype, device=device)
    tensor.requires_grad = requires_grad
    return tensor


def _rebuild_parameter(data, requires_grad, backward_hooks) -> torch.Tensor:
    parameter = torch.nn.Parameter(data, requires_grad)
    if backward_hooks:
        parameter._backward_hooks = backward_hooks
    return parameter


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state) -> torch.Tensor:
    parameter = _rebuild_parameter(data, requires_grad, backward_hooks)
    return _set_obj_state(parameter, state)


def _get_obj_state(obj):
    """What pickle has to keep beside a tensor's data: its __dict__ and its slots."""
    getstate = getattr(type(obj), "__getstate__", None)
    if getstate is not None and getstate is not getattr(object, "__getstate__", None):
        return obj.__getstate__()
    state = getattr(obj, "__dict__", None) or {}
    slots = {}
    for cls in type(obj).__mro__:
        names = cls.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__") and hasattr(obj, name):
                slots[name] = getattr(obj, name)
    return (state, slots) if slots else state


def _set_obj_state(obj, state):
    """Puts back what _get_obj_state gave."""
    slots = None
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError(f"Invalid serialized state: {state}")
        state, slots = state
    if state:
        obj.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(obj, name, value)
    return obj


def _element_size(dtype):
    """Bytes of one element."""
    return dtype.itemsize


class ExceptionWrapper:
    """An exception with its traceback as text, so that it can be raised again in another thread or
    process."""

    def __init__(self, exc_info=None, where="in background") -> None:
        import sys
        import traceback

        exc_info = exc_info or sys.exc_info()
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self):
        """Raises the exception with the original traceback in its message."""
        kind = self.exc_type
        raise self._made(f"Caught {kind.__name__} {self.where}.\nOriginal {self.exc_msg}")

    def _made(self, message):
        """An exception of the same class with a message, or where that cannot be a RuntimeError."""
        kind = self.exc_type
        if kind is KeyError:
            # KeyError shows the repr of its message: a class of our own keeps the lines apart.
            return KeyError(KeyErrorMessage(message))
        if getattr(kind, "message", None):
            return kind(message=message)
        try:
            return kind(message)
        except Exception:
            return RuntimeError(message)


class KeyErrorMessage(str):
    """A string whose repr is itself."""

    __slots__ = ()

    def __repr__(self) -> KeyErrorMessage:
        return self


def _get_available_device_type() -> str | None:
    """ "cuda" where there is a GPU, else None."""
    import torch

    return "cuda" if torch.cuda.is_available() else None


def _get_device_module(device_type):
    """The module torch.<device_type>."""
    import torch

    module = getattr(torch, device_type, None)
    if module is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as "
            f"'torch.{device_type}'."
        )
    return module


def _get_device_attr(get_member):
    kind = _get_available_device_type()
    return get_member(_get_device_module(kind)) if kind else None


def _get_current_device_index():
    """The number of the current GPU, or None."""
    return _get_device_attr(lambda module: module.current_device())


def _get_all_device_indices():
    """The numbers of all GPUs, or None."""
    return _get_device_attr(lambda module: list(range(module.device_count())))


def _get_device_index(device, optional=False, allow_cpu=False):
    """The number of a device; of the current one for None, where optional."""
    import torch

    index = place = torch.device(device) if isinstance(device, str) else device
    if isinstance(place, torch.device):
        on_cpu = place.type == "cpu"
        if on_cpu and not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {place}")
        index = -1 if on_cpu else place.index
    if index is None and not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer: {place}")
    return _get_current_device_index() if index is None else index


# ---- gradients


def _clear_grads(params, set_to_none) -> None:
    """Takes the gradients off, or fills them with zeros and cuts them from the graph that made
    them."""
    if set_to_none:
        for param in params:
            param.grad = None
        return
    for param in params:
        grad = param.grad
        if grad is not None:
            cut = grad.requires_grad_(False) if grad.grad_fn is None else grad.detach_()
            cut.zero_()


# ---- several tensors as one, for those who send them


def _flatten_dense_tensors(tensors):
    """One vector with the elements of all tensors, which must be of one dtype."""
    if not tensors:
        return torch.empty(0)
    return torch.cat([tensor.contiguous().reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat, tensors) -> tuple[torch.Tensor, ...]:
    """The parts of a vector in the shapes of the tensors, as views."""
    sizes = [tensor.numel() for tensor in tensors]
    parts = flat.narrow(0, 0, sum(sizes)).split(sizes)
    return tuple(part.view(t.shape) for part, t in zip(parts, tensors, strict=True))


def _take_tensors(tensors, size_limit):
    """Groups of tensors of one type, each group of at most so many bytes unless a single tensor has
    more."""
    groups = {}
    for tensor in tensors:
        kind = tensor.type()
        size = tensor.numel() * tensor.element_size()
        group, total = groups.get(kind, ([], 0))
        if group and total + size > size_limit:
            yield group
            group, total = [], 0
        groups[kind] = ([*group, tensor], total + size)
    for group, _ in groups.values():
        yield group
