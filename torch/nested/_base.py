"""What nested tensors of both layouts share: how calls reach the table, and that they take part in
autograd by their values.

A nested tensor wraps one plain tensor, the values. The wrapper is never in the graph; the values
are. Gradients need nothing of their own therefore: derivatives of all orders and both modes,
autocast, checkpoints and every device work as they do for plain tensors. This class makes the
wrapper answer for its values where a program asks it for `grad`, `requires_grad` and the like."""

from __future__ import annotations

import torch
from torch.nested import _registry

_FROM_VALUES = (
    "dtype device itemsize is_cuda is_cpu is_meta is_xpu is_mps is_quantized requires_grad grad_fn "
    "_grad_fn is_leaf retains_grad output_nr _version"
).split()


class NestedBase(torch.Tensor):
    """A batch of tensors of differing sizes. `_values` holds the elements; `like(values)` wraps
    others of the same structure."""

    # ---- calls

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return _registry.call(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _registry.call(func, args, kwargs or {})

    # ---- the class of the elements

    is_nested = property(lambda self: True)
    is_sparse = property(lambda self: False)
    is_sparse_csr = property(lambda self: False)
    is_mkldnn = property(lambda self: False)
    nbytes = property(lambda self: self.numel() * self._values.itemsize)

    def element_size(self):
        """Bytes of an element."""
        return self._values.element_size()

    def data_ptr(self) -> int:
        """The wrapper has no memory: see values()."""
        return 0

    def get_device(self):
        """The device's number, -1 for the CPU."""
        return self._values.get_device()

    def is_inference(self) -> bool:
        """Whether it was made in inference mode."""
        return self._values.is_inference()

    def is_shared(self):
        """Whether the values lie in shared memory."""
        return self._values.is_shared()

    def share_memory_(self):
        """Moves values and offsets to shared memory."""
        for part in self._parts():
            part.share_memory_()
        return self

    def is_pinned(self, device=None):
        """Whether the values lie in pinned memory."""
        return self._values.is_pinned()

    def type(self, dtype=None, non_blocking=False):
        """The name of the tensor type, or a conversion."""
        found = self._values.type() if dtype is None else self._values.type(dtype, non_blocking)
        return found if isinstance(found, str) else self.like(found)

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating point one."""
        return self._values.is_floating_point()

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self._values.is_complex()

    def is_signed(self):
        """Whether the dtype has a sign."""
        return self._values.is_signed()

    def is_conj(self):
        """Whether the values are a lazily conjugated view."""
        return self._values.is_conj()

    def is_neg(self):
        """Whether the values are a lazily negated view."""
        return self._values.is_neg()

    def _is_view(self):
        return self._values._is_view()

    _base = property(lambda self: self._values._base)

    # ---- what only plain tensors can do

    def tolist(self):
        """Not for nested tensors: the lists of the components are."""
        raise RuntimeError(
            ".tolist() is not supported for tensor subclasses, got NestedTensor; use unbind()"
        )

    def numpy(self, *, force=False):
        """Not for nested tensors."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def item(self):
        """The value of a nested tensor with one element."""
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return self._packed().item()

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError(
                "Boolean value of Tensor with "
                f"{'more than one' if self.numel() else 'no'} value{'s' * (not self.numel())} "
                "is ambiguous"
            )
        return bool(self.item())

    def untyped_storage(self):
        """The wrapper has no memory: see values()."""
        raise RuntimeError("a nested tensor has no storage of its own; use values()")

    # ---- autograd

    @property
    def grad(self):
        """The gradient of a leaf, nested like it."""
        found = self._values.grad
        return None if found is None else self.like(found)

    @grad.setter
    def grad(self, value) -> None:
        self._values.grad = None if value is None else matching_values(self, value, "grad")

    @property
    def data(self):
        """The same values without history."""
        return self.like(self._values.data)

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None) -> None:
        """The backward pass from this tensor; see torch.autograd.backward."""
        torch.autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def requires_grad_(self, requires_grad=True):
        """Whether gradients shall be computed for this leaf."""
        self._values.requires_grad_(requires_grad)
        return self

    def retain_grad(self) -> None:
        """Keeps the gradient of a tensor that is no leaf."""
        self._values.retain_grad()

    def register_hook(self, hook):
        """A function that sees this tensor's gradient, and may replace it."""

        def on_values(grad) -> torch.Tensor | None:
            found = hook(self.like(grad))
            return None if found is None else matching_values(self, found, "a hook's result")

        return self._values.register_hook(on_values)

    def register_post_accumulate_grad_hook(self, hook):
        """A function that is called with this leaf when its .grad was updated."""
        return self._values.register_post_accumulate_grad_hook(lambda values: hook(self))

    def detach(self):
        """The same values, cut off from the graph."""
        return self.like(self._values.detach())

    def detach_(self):
        """Cuts this tensor off from the graph."""
        self._values.detach_()
        return self

    # ---- copying and printing

    def __format__(self, spec):
        return object.__format__(self, spec)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment."
            )
        # The structure is shared: the copy still fits the original.
        memo[id(self)] = made = self.like(self._values.__deepcopy__(memo))
        return made

    def __hash__(self) -> int:
        return id(self)


def _delegate(name):
    return property(
        lambda self: getattr(self._values, name),
        (lambda self, value: setattr(self._values, name, value))
        if name == "requires_grad"
        else None,
    )


for _name in _FROM_VALUES:
    setattr(NestedBase, _name, _delegate(_name))


def matching_values(nested, other, what) -> torch.Tensor:
    """The values of another tensor that must have the sizes of `nested`."""
    if not isinstance(other, NestedBase) or not nested.is_same_size(other):
        raise RuntimeError(f"{what} must be nested like {nested!r}, got {other!r}")
    return other._values


@_registry.implements("grad")
@_registry.implements_strided("grad")
def grad(func, outputs, inputs, grad_outputs=None, **kwargs):
    """torch.autograd.grad: nested tensors are in the graph by their values."""
    given = grad_outputs
    if given is not None:
        given = (given,) if isinstance(given, torch.Tensor) else given
        outputs, given = backward_arguments(outputs, given)
    found = func(in_graph(outputs), in_graph(inputs), given, **kwargs)
    return tuple(
        i.like(g) if isinstance(i, NestedBase) and g is not None else g
        for i, g in zip(inputs, found, strict=True)
    )


def in_graph(tensors) -> tuple[torch.Tensor]:
    """The tensors that autograd knows in place of nested ones."""
    return tuple(t._values if isinstance(t, NestedBase) else t for t in tensors)


def backward_arguments(outputs, grads) -> tuple[tuple[torch.Tensor], tuple[torch.Tensor | None]]:
    """The outputs of a backward pass and their gradients as autograd knows them."""
    given = tuple(
        g if g is None or not isinstance(o, NestedBase) else matching_values(o, g, "a gradient")
        for o, g in zip(outputs, grads, strict=False)
    )
    return in_graph(outputs), given
