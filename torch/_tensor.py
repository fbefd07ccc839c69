"""The class torch.Tensor: what is written in Python on top of torch._C.TensorBase, which has the
operators.

Here are printing, copying and pickling, the array protocols, hooks, and the methods that are
compositions of operators. Operators (`a + b`, `a.sum()`) must not be overridden here: defined
in Python they would cost a microsecond each.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import _C
from torch._utils import _rebuild_tensor_v2

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

_NO_WRAP = None


def _functions_without_wrapping():
    """Functions whose result keeps its own class when they are asked of a Tensor subclass."""
    global _NO_WRAP
    if _NO_WRAP is None:
        names = ("_base", "grad", "_grad")
        descriptors = (getattr(Tensor, name, None) for name in names)
        _NO_WRAP = {d.__get__ for d in descriptors if d is not None}
    return _NO_WRAP


def _convert(value, cls):
    """Gives the tensors in a result the class `cls`."""
    if cls is Tensor:
        return value
    if isinstance(value, Tensor) and not isinstance(value, cls):
        return value.as_subclass(cls)
    if isinstance(value, (tuple, list)):
        converted = [_convert(item, cls) for item in value]
        if type(value) in (tuple, list):
            return type(value)(converted)
        if hasattr(value, "_fields"):
            return type(value)(*converted)
        return type(value)(converted)
    return value


def _has_torch_function(*values) -> bool:
    """Whether a function of this file has to let __torch_function__ answer."""
    for value in values:
        if type(value) is not Tensor and _C._has_torch_function((value,)):
            return True
    return _C._is_torch_function_mode_enabled()


def _override(func, relevant, *args, **kwargs):
    from torch.overrides import handle_torch_function

    return handle_torch_function(func, relevant, *args, **kwargs)


def _asking(method):
    """A method of Tensor that lets __torch_function__ take it over."""

    @functools.wraps(method)
    def wrapped(self, *args, **kwargs) -> object:
        if _has_torch_function(self):
            return _override(wrapped, (self,), self, *args, **kwargs)
        return method(self, *args, **kwargs)

    return wrapped


# By number, as C++ counts them.
_SCHEMES = (
    torch.per_tensor_affine,
    torch.per_channel_affine,
    torch.per_tensor_symmetric,
    torch.per_channel_symmetric,
    torch.per_channel_affine_float_qparams,
)


class Tensor(_C.TensorBase):
    """A multi-dimensional array of elements of one dtype on one device."""

    __array_priority__ = 1000
    __torch_dispatch__ = _C._disabled_torch_dispatch_impl

    # ---- overriding

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None) -> Any:
        """Runs `func` on the tensors as they are and gives tensor results this class."""
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        with _C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
            if func in _functions_without_wrapping():
                return result
            return _convert(result, cls)

    # ---- printing

    def __repr__(self, *, tensor_contents=None) -> str:
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.__repr__, locals())
        from torch._tensor_str import _str

        return _str(self, tensor_contents=tensor_contents)

    def __format__(self, format_spec) -> str:
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.__format__, locals())
        number = type(self) is Tensor and self.dim() == 0 and not self.is_meta
        return format(self.item(), format_spec) if number else object.__format__(self, format_spec)

    def __dir__(self) -> list[str]:
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.__dir__, locals())
        names = set(object.__dir__(self))
        if not self.is_cuda:
            names.discard("__cuda_array_interface__")
        return sorted(names)

    # ---- copying and pickling

    def __deepcopy__(self, memo) -> Tensor:
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.__deepcopy__, locals())
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the "
                "deepcopy protocol at the "
                "moment.  If you were attempting to deepcopy a module, this may be because of a "
                "torch.nn.utils."
                "weight_norm usage: torch.nn.utils.parametrizations.weight_norm can be copied"
            )
        from copy import deepcopy

        if id(self) in memo:
            return memo[id(self)]
        with torch.no_grad():
            new = self._deepcopy_data(memo)
            if self.requires_grad:
                new.requires_grad_()
            if self.grad is not None:
                new.grad = self.grad.__deepcopy__(memo)
            if type(self) is not Tensor:
                new = self._deepcopy_subclass(new)
            memo[id(self)] = new
            state = getattr(self, "__dict__", None)
            if state:
                new.__dict__ = deepcopy(state, memo)
            if type(self) is not Tensor:
                self._deepcopy_slots(new, memo)
        return new

    def _deepcopy_slots(self, new, memo) -> None:
        """Copies what a subclass keeps in slots."""
        from copy import deepcopy
        from copyreg import _slotnames

        for name in _slotnames(type(self)):
            if hasattr(self, name):
                setattr(new, name, deepcopy(getattr(self, name), memo))

    def _deepcopy_data(self, memo):
        """A tensor on a copy of the whole storage, so that tensors that share memory still do
        afterwards.
        """
        odd = self.layout is not torch.strided or self.is_quantized
        if odd or self.is_meta or self._is_wrapper():
            return self.clone()
        storage = self.untyped_storage().__deepcopy__(memo)
        new = torch.empty([], dtype=self.dtype, device=self.device)
        new.set_(storage, self.storage_offset(), self.size(), self.stride())
        if self.is_conj():
            new = new.conj_physical()
        if self.is_neg():
            new = new.neg()
        return new

    def _is_wrapper(self) -> bool:
        """Whether this is a subclass that holds other tensors and no memory of its own."""
        overrides = type(self).__torch_dispatch__ is not Tensor.__torch_dispatch__
        return overrides and self.data_ptr() == 0

    def _deepcopy_subclass(self, new):
        if type(new) is type(self):
            return new
        if type(self).__torch_dispatch__ is not Tensor.__torch_dispatch__:
            raise RuntimeError(
                f"{type(self).__name__} overrides __torch_dispatch__ and has to define "
                "__deepcopy__ itself"
            )
        return Tensor._make_subclass(type(self), new.detach(), self.requires_grad)

    def __reduce_ex__(self, protocol) -> tuple[object, ...]:
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.__reduce_ex__, locals())
        state = torch._utils._get_obj_state(self)
        func, args = self._reduce_ex_internal(protocol)
        if type(self) is Tensor and not state:
            return func, args
        return _rebuild_from_type_v2, (func, type(self), args, state)

    def _reduce_ex_internal(self, protocol):
        from collections import OrderedDict

        # Hooks are functions of the running program: they are not pickled, as their results would
        # differ.
        hooks = OrderedDict()
        if self.layout is torch.sparse_coo:
            args = (
                self.layout,
                (self._indices(), self._values(), self.size(), self.is_coalesced()),
            )
            return torch._utils._rebuild_sparse_tensor, args
        if self.layout is not torch.strided:
            names = torch._tensor_str._COMPRESSED_NAMES[str(self.layout).replace("torch.", "")]
            first, second = (getattr(self, name)() for name in names)
            args = (self.layout, (first, second, self.values(), self.size()))
            return torch._utils._rebuild_sparse_tensor, args
        if self._is_wrapper():
            args = (type(self), self.dtype, tuple(self.size()), self.stride())
            args = (*args, self.storage_offset(), self.layout, self.device, self.requires_grad)
            return torch._utils._rebuild_wrapper_subclass, args
        if self.is_quantized:
            return torch._utils._rebuild_qtensor, torch._utils._quantized_state(self, hooks)
        if self.device.type == "meta":
            args = (self.dtype, tuple(self.size()), self.stride(), self.requires_grad)
            return torch._utils._rebuild_meta_tensor_no_storage, args
        untyped, dtype = self.untyped_storage(), self.dtype
        # Dtypes younger than the classes of storages are written with the bytes and their name.
        classic = dtype in torch.storage._DTYPE_TO_STORAGE
        args = (
            torch.storage._typed_for_pickling(untyped, dtype) if classic else untyped,
            self.storage_offset(),
            tuple(self.size()),
            self.stride(),
            self.requires_grad,
            hooks,
        )
        if not classic:
            args = (*args, dtype)
        metadata = torch._utils.get_tensor_metadata(self)
        function = _rebuild_tensor_v2 if classic else torch._utils._rebuild_tensor_v3
        return function, (*args, metadata) if metadata else args

    def __setstate__(self, state) -> None:
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.__setstate__, locals())
        if not self.is_leaf:
            raise RuntimeError("__setstate__ can be only called on leaf Tensors")
        if len(state) == 4:
            self.set_(*state)
            return
        if len(state) == 5:  # the oldest files
            self.data, _, hooks, self.requires_grad, _ = state
        else:
            self.requires_grad, _, hooks = state
        self._backward_hooks = hooks

    def _neg_view(self) -> Tensor:
        """The negative of the tensor as a view of its memory."""
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor._neg_view, locals())
        return torch._neg_view(self)

    # ---- autograd

    def register_hook(self, hook) -> RemovableHandle:
        """Registers a function that is called with this tensor's gradient and may replace it."""
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.register_hook, locals())
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        return self._add_hook("_backward_hooks", hook)

    def _add_hook(self, store, hook) -> RemovableHandle:
        from collections import OrderedDict

        from torch.utils.hooks import RemovableHandle

        if getattr(self, store) is None:
            setattr(self, store, OrderedDict())
        hooks = getattr(self, store)
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle

    def register_post_accumulate_grad_hook(self, hook) -> RemovableHandle:
        """Registers a function that is called with this leaf after its .grad has been updated."""
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.register_post_accumulate_grad_hook, locals())
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self.grad_fn is not None:
            raise RuntimeError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors"
            )
        return self._add_hook("_post_accumulate_grad_hooks", hook)

    # ---- sequence protocol

    def __iter__(self) -> Iterator[Tensor]:
        # Unbinding at once is faster than indexing each row, and gradients then have one node.
        if self.dim() == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self) -> Tensor:
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.__reversed__, locals())
        return self if self.dim() == 0 else self.flip(0)

    def __contains__(self, element, /) -> bool:
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.__contains__, locals())
        if isinstance(element, (Tensor, bool, int, float, complex)):
            return bool((element == self).any())
        raise RuntimeError(
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element)}."
        )

    # ---- array protocols

    def __array__(self, dtype=None, copy=None) -> Any:
        if _has_torch_function(self):
            return _override(Tensor.__array__, (self,), self, dtype=dtype)
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"an array of {dtype} cannot share the memory of {self.dtype}")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_wrap__(self, array, context=None, return_scalar=False) -> Any:
        if _has_torch_function(self):
            return _override(Tensor.__array_wrap__, (self,), self, array=array)
        # Bools of NumPy come back as bytes.
        return torch.from_numpy(array.astype("uint8") if array.dtype == bool else array)

    @property
    def __cuda_array_interface__(self):
        """Memory of a CUDA tensor for other libraries; AttributeError elsewhere, which is what they
        test.
        """
        if _has_torch_function(self):
            return _override(Tensor.__cuda_array_interface__.__get__, (self,), self)
        if not self.is_cuda:
            raise AttributeError(
                f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} "
                "If CUDA data is required use tensor.cuda() to copy tensor to device memory."
            )
        if self.requires_grad:
            raise RuntimeError(
                "Can't get __cuda_array_interface__ on Variable that requires grad. "
                "If gradients aren't required, use var.detach() to get Variable that doesn't "
                "require grad."
            )
        return torch.cuda._array_interface(self)

    def __dlpack__(self, *, stream=-1, max_version=None, dl_device=None, copy=None) -> Any:
        """A DLPack capsule of this tensor; see the array API standard."""
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.__dlpack__, locals())
        from torch.utils.dlpack import export

        return export(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The kind and the number of this tensor's device, by DLPack's numbering."""
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.__dlpack_device__, locals())
        from torch.utils.dlpack import device_of

        return device_of(self)

    # ---- storage

    def storage(self) -> Any:
        """The memory of this tensor as a TypedStorage (deprecated: use untyped_storage)."""
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.storage, locals())
        torch.storage._warn_typed_storage_removal(stacklevel=2)
        return self._typed_storage()

    def _typed_storage(self):
        return torch.storage.TypedStorage(
            wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True
        )

    @_asking
    def storage_type(self) -> type:
        """The class of the typed storage (deprecated)."""
        return self.storage()._get_legacy_storage_class()

    @_asking
    def is_shared(self) -> bool:
        """Whether the memory is shared between processes."""
        if self.is_cuda:
            return False
        return self.untyped_storage().is_shared()

    @_asking
    def share_memory_(self) -> Tensor:
        """Moves the memory to where other processes can map it."""
        self.untyped_storage().share_memory_()
        return self

    def record_stream(self, s) -> None:
        """The memory is also used on that stream: it is handed out again only when work queued
        there so far is done."""
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.record_stream, locals())
        return torch._C._cuda_recordStream(self, s)

    # ---- operators of Python 2

    @_asking
    def __div__(self, other) -> Tensor:
        """self / other."""
        return self / other

    @_asking
    def __rdiv__(self, other) -> Tensor:
        """other / self."""
        return other / self

    @_asking
    def __idiv__(self, other) -> Tensor:
        """self /= other."""
        return self.div_(other)

    @_asking
    def __long__(self) -> int:
        """int(self)."""
        return int(self)

    # ---- compositions of operators

    def split(self, split_size, dim=0) -> tuple[Tensor, ...]:
        """Views of consecutive parts: of a size, or of the sizes in a list."""
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.split, locals())
        return torch.functional.split(self, split_size, dim)

    def norm(self, p="fro", dim=None, keepdim=False, dtype=None) -> Tensor:
        """See torch.norm."""
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.norm, locals())
        return torch.norm(self, p, dim, keepdim, dtype=dtype)

    def nonzero(self, *, as_tuple=False) -> Tensor | tuple[Tensor, ...]:
        """See torch.nonzero."""
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.nonzero, locals())
        return torch.nonzero(self, as_tuple=as_tuple)

    @_asking
    def unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None) -> Tensor:
        """See torch.unique."""
        return torch.unique(self, sorted, return_inverse, return_counts, dim)

    @_asking
    def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None) -> Any:
        """See torch.unique_consecutive."""
        return torch.unique_consecutive(self, return_inverse, return_counts, dim)

    @_asking
    def stft(
        self,
        n_fft,
        hop_length=None,
        win_length=None,
        window=None,
        center=True,
        pad_mode="reflect",
        normalized=False,
        onesided=None,
        return_complex=None,
        align_to_window=None,
    ) -> Any:
        """See torch.stft."""
        return torch.stft(
            self,
            n_fft,
            hop_length,
            win_length,
            window,
            center,
            pad_mode,
            normalized,
            onesided,
            return_complex,
            align_to_window,
        )

    @_asking
    def istft(
        self,
        n_fft,
        hop_length=None,
        win_length=None,
        window=None,
        center=True,
        normalized=False,
        onesided=None,
        length=None,
        return_complex=False,
    ) -> Any:
        """See torch.istft."""
        return torch.istft(
            self,
            n_fft,
            hop_length,
            win_length,
            window,
            center,
            normalized,
            onesided,
            length,
            return_complex,
        )

    @_asking
    def lu(self, pivot=True, get_infos=False) -> Any:
        """See torch.linalg.lu_factor (deprecated form)."""
        return torch.functional.lu(self, pivot, get_infos)

    def eig(self, eigenvectors=False) -> Any:
        """Removed: see torch.linalg.eig."""
        return torch.eig(self)

    def lstsq(self, other) -> Any:
        """Removed: see torch.linalg.lstsq."""
        return torch.lstsq(self, other)

    def solve(self, other) -> Any:
        """Removed: see torch.linalg.solve."""
        return torch.solve(self, other)

    def symeig(self, eigenvectors=False) -> Any:
        """Removed: see torch.linalg.eigh."""
        return torch.symeig(self)

    def to_sparse_coo(self) -> Tensor:
        """The same as to_sparse()."""
        return self.to_sparse()

    @_asking
    def resize(self, *sizes) -> Tensor:
        """The elements with other sizes; the count must stay. Use reshape."""
        import warnings

        warnings.warn("non-inplace resize is deprecated", stacklevel=2)
        sizes = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
        return self.contiguous().view(sizes)

    @_asking
    def resize_as(self, tensor) -> Tensor:
        """The elements with the sizes of another tensor; the count must be the same."""
        import warnings

        warnings.warn("non-inplace resize_as is deprecated", stacklevel=2)
        return self.contiguous().view(tensor.size())

    @_asking
    def qscheme(self) -> torch.qscheme:
        """How the integers of a quantized tensor stand for numbers."""
        return _SCHEMES[torch._C._quantization_scheme(self)]

    @_asking
    def xpu(self, device=None, non_blocking=False, memory_format=torch.preserve_format) -> NoReturn:
        """Would be a copy on an Intel GPU; there is no support for them."""
        raise AssertionError("Torch not compiled with XPU enabled")

    @_asking
    def ipu(self, device=None, non_blocking=False, memory_format=torch.preserve_format) -> NoReturn:
        """Would be a copy on an IPU; there is no support for them."""
        raise RuntimeError("PyTorch is not linked with support for ipu devices")

    @_asking
    def mtia(
        self, device=None, non_blocking=False, memory_format=torch.preserve_format
    ) -> NoReturn:
        """Would be a copy on an MTIA device; there is no support for them."""
        raise AssertionError("Torch not compiled with MTIA enabled")

    def reinforce(self, reward) -> NoReturn:
        """Removed long ago; torch.distributions has what replaces it."""
        raise RuntimeError("reinforce() was removed. Use torch.distributions instead.")

    def dim_order(self, *, ambiguity_check=False) -> tuple[int, ...]:
        """The dimensions from the outermost to the innermost in memory."""
        if _has_torch_function(self):
            return torch.overrides.redirect(Tensor.dim_order, locals())
        return torch.utils._memory_order.dim_order(self, ambiguity_check)

    def module_load(self, other, assign=False) -> Tensor:
        """What nn.Module.load_state_dict puts in place of this tensor."""
        if _has_torch_function(self, other):
            return torch.overrides.redirect(Tensor.module_load, locals())
        return other.detach() if assign else self.copy_(other).detach()


def _rebuild_from_type_v2(func, new_type, args, state):
    """Unpickles a tensor of a subclass, or one with attributes of its own."""
    result = func(*args)
    if type(result) is not new_type:
        result = result.as_subclass(new_type)
    if getattr(result.__class__, "__setstate__", Tensor.__setstate__) is not Tensor.__setstate__:
        result.__setstate__(state)
    else:
        torch._utils._set_obj_state(result, state)
    return result


Tensor.__module__ = "torch"
_C._set_tensor_class(Tensor)
