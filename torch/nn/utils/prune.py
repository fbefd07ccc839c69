"""Pruning: a mask over a parameter, applied before every forward.

A pruned parameter moves to `<name>_orig`, its mask is the buffer `<name>_mask`, and `<name>` is
their product. Pruning again narrows the mask: earlier methods and the new one share a container.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from typing import Any as _Any

import torch
from torch.nn.utils._weight_hooks import pop_hook

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


def _validate_pruning_amount_init(amount) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if amount < 0 or (not whole and amount > 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


def _validate_pruning_amount(amount, tensor_size) -> None:
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to "
            f"prune={tensor_size}"
        )


def _compute_nparams_toprune(amount, tensor_size) -> int:
    """How many of so many things to prune: a number of them, or a share."""
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _count(amount, size) -> int:
    _validate_pruning_amount(amount, size)
    return _compute_nparams_toprune(amount, size)


class BasePruningMethod(ABC):
    """Subclasses set PRUNING_TYPE and define compute_mask."""

    @abstractmethod
    def compute_mask(self, t, default_mask) -> _Any:
        """The mask for a tensor; at most the ones of default_mask."""

    def __call__(self, module, inputs) -> _Any:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module) -> _Any:
        """The parameter with the pruned entries set to zero."""
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    def prune(self, t, default_mask=None, importance_scores=None) -> _Any:
        """A pruned copy of a tensor."""
        scores = t if importance_scores is None else importance_scores
        if default_mask is None:
            default_mask = torch.ones_like(t)
        return t * self.compute_mask(scores, default_mask=default_mask)

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs) -> _Any:
        """Prunes a parameter of a module and installs the hook."""
        found = [
            (key, hook)
            for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]
        method = cls(*args, **kwargs)
        method._tensor_name = name
        parameter = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != parameter.shape:
            raise AssertionError("importance_scores should have the same shape as parameter")
        scores = parameter if importance_scores is None else importance_scores
        if found:
            key, old = found[0]
            del module._forward_pre_hooks[key]
            container = PruningContainer(old) if not isinstance(old, PruningContainer) else old
            container.add_pruning_method(method)
            method = container
            default = getattr(module, name + "_mask").to(dtype=scores.dtype)
            original = getattr(module, name + "_orig")
        else:
            original = module._parameters[name]
            default = torch.ones_like(original)
        with torch.no_grad():
            mask = method.compute_mask(scores.detach(), default_mask=default.detach())
        if not found:
            del module._parameters[name]
            module.register_parameter(name + "_orig", original)
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def remove(self, module) -> _Any:
        """Makes the pruning permanent: the parameter holds the zeros itself."""
        name = self._tensor_name
        value = self.apply_mask(module)
        delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = value.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods, each applied to what the earlier ones left."""

    def __init__(self, *args) -> None:
        self._pruning_methods = ()
        for method in args:
            self.add_pruning_method(method)
        if args:
            self._tensor_name = args[0]._tensor_name

    def add_pruning_method(self, method) -> _Any:
        """Appends a method for the same parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._pruning_methods and method._tensor_name != self._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. "
                f"Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> _Any:
        return iter(self._pruning_methods)

    def __getitem__(self, idx) -> _Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask) -> _Any:
        """The old mask narrowed by the last method, which sees only what is still there."""
        method = self._pruning_methods[-1]
        kind = method.PRUNING_TYPE
        mask = default_mask.clone()
        if kind == "unstructured":
            alive = mask == 1
            mask[alive] = method.compute_mask(t[alive], default_mask=mask[alive])
            return mask
        if kind == "global":
            return method.compute_mask(t, default_mask=mask)
        if kind != "structured":
            raise ValueError(f"Unrecognized PRUNING_TYPE {kind}")
        dim = method.dim if method.dim >= 0 else method.dim + t.dim()
        others = [d for d in range(t.dim()) if d != dim]
        alive = (mask != 0).sum(dim=others).nonzero().flatten()
        kept = mask.index_select(dim, alive)
        part = method.compute_mask(t.index_select(dim, alive), default_mask=kept)
        return mask.index_copy(dim, alive, part)


class Identity(BasePruningMethod):
    """Prunes nothing, but installs mask and hook."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask) -> _Any:
        return default_mask


class _Unstructured(BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def __init__(self, amount) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t, default_mask) -> _Any:
        mask = default_mask.clone(memory_format=torch.contiguous_format)
        count = _count(self.amount, t.nelement())
        if count:
            chosen = self._choose(t, count)
            mask.view(-1).index_fill_(0, chosen, 0)
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes entries at random."""

    def _choose(self, t, count):
        return torch.topk(torch.rand_like(t).view(-1), k=count).indices

    @classmethod
    def apply(cls, module, name, amount) -> _Any:
        """Prunes a parameter of a module."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the entries of smallest magnitude."""

    def _choose(self, t, count) -> torch.Tensor:
        return torch.topk(t.abs().reshape(-1), k=count, largest=False).indices

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None) -> _Any:
        """Prunes a parameter of a module."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(BasePruningMethod):
    PRUNING_TYPE = "structured"

    def compute_mask(self, t, default_mask) -> _Any:
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. "
                f"Found tensor of shape {t.shape} with {t.dim()} dims"
            )
        if not -t.dim() <= self.dim < t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        channels = t.shape[self.dim]
        count = _count(self.amount, channels)
        if not count:
            return default_mask
        weakest = torch.topk(self._strength(t, channels), k=count, largest=False).indices
        return default_mask.index_fill(self.dim, weakest, 0)


class RandomStructured(_Structured):
    """Prunes whole channels at random."""

    def __init__(self, amount, dim=-1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def _strength(self, t, channels):
        return torch.rand(channels)

    @classmethod
    def apply(cls, module, name, amount, dim=-1) -> _Any:
        """Prunes a parameter of a module."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the channels of smallest n-norm."""

    def __init__(self, amount, n, dim=-1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def _strength(self, t, channels) -> torch.Tensor:
        dim = self.dim if self.dim >= 0 else self.dim + t.dim()
        others = [d for d in range(t.dim()) if d != dim]
        return torch.linalg.vector_norm(t, float(self.n), dim=others)

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None) -> _Any:
        """Prunes a parameter of a module."""
        return super().apply(
            module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
        )


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask) -> None:
        self.mask = mask

    def compute_mask(self, t, default_mask) -> _Any:
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask) -> _Any:
        """Prunes a parameter of a module."""
        return super().apply(module, name, mask=mask)


def _pruned(method, module, name, *args, **kwargs):
    """The module, after a method has pruned a parameter of it."""
    method.apply(module, name, *args, **kwargs)
    return module


def identity(module, name) -> _Any:
    """Installs mask and hook without pruning."""
    return _pruned(Identity, module, name)


def random_unstructured(module, name, amount) -> _Any:
    """Prunes entries of a parameter at random."""
    return _pruned(RandomUnstructured, module, name, amount)


def l1_unstructured(module, name, amount, importance_scores=None) -> _Any:
    """Prunes the entries of a parameter of smallest magnitude."""
    return _pruned(L1Unstructured, module, name, amount=amount, importance_scores=importance_scores)


def random_structured(module, name, amount, dim) -> _Any:
    """Prunes channels of a parameter at random."""
    return _pruned(RandomStructured, module, name, amount, dim)


def ln_structured(module, name, amount, n, dim, importance_scores=None) -> _Any:
    """Prunes the channels of a parameter of smallest n-norm."""
    return _pruned(LnStructured, module, name, amount, n, dim, importance_scores=importance_scores)


def custom_from_mask(module, name, mask) -> _Any:
    """Prunes a parameter by a given mask."""
    return _pruned(CustomFromMask, module, name, mask)


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs) -> _Any:
    """Prunes several parameters as if they were one vector."""
    pairs = list(parameters)
    scores = importance_scores or {}
    values = [scores.get(pair, getattr(*pair)).detach() for pair in pairs]
    masks = [
        getattr(module, name + "_mask", torch.ones_like(getattr(module, name)))
        for module, name in pairs
    ]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
            f"Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "temp"
    container = PruningContainer(method)
    flat = torch.cat([mask.detach().reshape(-1) for mask in masks])
    final = container.compute_mask(torch.cat([value.reshape(-1) for value in values]), flat)
    start = 0
    for (module, name), value in zip(pairs, values, strict=True):
        count = value.numel()
        custom_from_mask(module, name, final[start : start + count].view_as(value))
        start += count


def remove(module, name) -> _Any:
    """Makes the pruning of a parameter permanent."""
    method = pop_hook(module, BasePruningMethod, name, "_tensor_name")
    if method is None:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    method.remove(module)
    return module


def is_pruned(module) -> _Any:
    """Whether any parameter of a module or its submodules is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for submodule in module.modules()
        for hook in submodule._forward_pre_hooks.values()
    )
