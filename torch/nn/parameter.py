"""Tensors that modules register by themselves when they are assigned as attributes."""

from __future__ import annotations

import torch
from torch import _C

__all__ = ["Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer", "is_lazy"]


class _ParameterMeta(torch._C._TensorMeta):
    """isinstance(t, Parameter) also holds for subclass tensors that are marked as parameters."""

    def __instancecheck__(cls, instance) -> bool:
        if super().__instancecheck__(instance):
            return True
        return (
            cls is Parameter
            and isinstance(instance, torch.Tensor)
            and getattr(instance, "_is_param", False)
        )


def _marked(data, requires_grad):
    """A tensor of another class as a parameter: it keeps its class and is marked."""
    marked = data.detach().requires_grad_(requires_grad)
    if type(marked) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires "
            "that detach() "
            f"returns an instance of the same type, but return type {type(marked).__name__} "
            "was found instead."
        )
    marked._is_param = True
    return marked


class Parameter(torch.Tensor, metaclass=_ParameterMeta):
    """A tensor that is a parameter of a module: it requires gradients unless told otherwise."""

    def __new__(cls, data=None, requires_grad=True):
        plain = torch.empty(0) if data is None else data
        if type(plain) not in (torch.Tensor, Parameter):
            return _marked(plain, requires_grad)
        return torch.Tensor._make_subclass(cls, plain, requires_grad)

    def __deepcopy__(self, memo) -> torch.Tensor:
        copied = memo.get(id(self))
        if copied is None:
            values = self.data.clone(memory_format=torch.preserve_format)
            copied = memo[id(self)] = type(self)(values, self.requires_grad)
        return copied

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto):
        from collections import OrderedDict

        utils = torch._utils
        attributes = utils._get_obj_state(self)
        parts = (self.data, self.requires_grad, OrderedDict())
        if attributes:
            return utils._rebuild_parameter_with_state, (*parts, attributes)
        return utils._rebuild_parameter, parts

    __torch_function__ = _C._disabled_torch_function_impl


class _BufferMeta(torch._C._TensorMeta):
    """isinstance(t, Buffer) holds for every tensor that is marked as a buffer."""

    def __instancecheck__(cls, instance):
        if super().__instancecheck__(instance):
            return True
        return isinstance(instance, torch.Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(torch.Tensor, metaclass=_BufferMeta):
    """A tensor that belongs to a module without being a parameter. Making one marks the tensor
    itself.
    """

    def __new__(cls, data=None, *, persistent=True) -> torch.Tensor:
        if data is None:
            data = torch.empty(0)
        tensor = data.detach().requires_grad_(data.requires_grad)
        tensor.persistent = persistent
        tensor._is_buffer = True
        return tensor

    __torch_function__ = _C._disabled_torch_function_impl


def _uninitialized(what):
    raise ValueError(
        f"Attempted to use an uninitialized parameter in {what}. This error happens when you "
        "are using a "
        "`LazyModule` or explicitly manipulating `torch.nn.parameter.UninitializedParameter` "
        "objects. When using "
        "LazyModules Call `forward` with a dummy batch to initialize the parameters before "
        "calling torch functions"
    )


class UninitializedTensorMixin:
    """A tensor whose shape is not known yet: only what needs no shape works."""

    _ALLOWED = (
        "to",
        "cpu",
        "cuda",
        "half",
        "float",
        "double",
        "bfloat16",
        "share_memory_",
        "copy_",
        "detach_",
        "is_floating_point",
        "is_complex",
    )

    def materialize(self, shape, device=None, dtype=None) -> None:
        """Gives the tensor its shape; the class becomes an ordinary one."""
        like = self.data
        device = like.device if device is None else device
        self.data = torch.empty(shape, device=device, dtype=dtype or like.dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        """Not known: raises."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call "
            "`forward` to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self):
        """Not possible yet: raises."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the "
            "parameters before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{self.__class__.__name__}>"

    def __reduce_ex__(self, proto):
        return self.__class__, (self.requires_grad,)

    def __deepcopy__(self, memo) -> UninitializedParameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in cls._ALLOWED or name in ("__get__", "__set__", "requires_grad_", "__repr__"):
            return torch.Tensor.__torch_function__.__func__(torch.Tensor, func, (), args, kwargs)
        _uninitialized(func)


def is_lazy(param) -> bool:
    """Whether a parameter has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter without a shape, of a lazy module."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None) -> UninitializedParameter:
        return torch.Tensor._make_subclass(
            cls, torch.empty(0, device=device, dtype=dtype), requires_grad
        )


class UninitializedBuffer(UninitializedTensorMixin, torch.Tensor):
    """A buffer without a shape, of a lazy module."""

    cls_to_become = torch.Tensor

    def __new__(
        cls, requires_grad=False, device=None, dtype=None, persistent=True
    ) -> UninitializedBuffer:
        tensor = torch.Tensor._make_subclass(
            cls, torch.empty(0, device=device, dtype=dtype), requires_grad
        )
        tensor.persistent = persistent
        tensor._is_buffer = True
        return tensor


Parameter.__module__ = "torch.nn.parameter"
_C._set_parameter_class(Parameter)
