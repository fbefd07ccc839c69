"""ExpandedWeight: a parameter that leaves the gradients of each sample in `grad_sample`.

The functions of layers take such a weight in place of a parameter. Each sample of the batch gets a
view of the weight of its own, by expansion and without a copy; the function is mapped over samples
and views together (torch.func.vmap), and the views' gradients are those of the samples."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional as F

__all__ = ["ExpandedWeight"]

# Functions -> how many dimensions a batch of inputs has at least.
_HANDLED: dict[Callable, int] = {
    torch.conv1d: 3,
    torch.conv2d: 4,
    torch.conv3d: 5,
    F.conv1d: 3,
    F.conv2d: 4,
    F.conv3d: 5,
    F.embedding: 2,
    F.group_norm: 2,
    F.instance_norm: 2,
    F.layer_norm: 2,
    F.linear: 2,
}


class ExpandedWeight(torch.Tensor):
    """A view of `orig_weight` for a batch. `loss_reduction` ("sum" or "mean") says how the loss
    joins the samples: gradients of a mean are scaled back."""

    handled_functions = _HANDLED

    def __new__(
        cls, orig_weight: torch.Tensor, batch_size: int, loss_reduction: str
    ) -> ExpandedWeight:
        """Checks what the constructor is given."""
        if not isinstance(orig_weight, torch.Tensor):
            raise RuntimeError(
                f"Can only make Expanded Weights of Tensors, got {type(orig_weight).__name__}"
            )
        if not orig_weight.requires_grad:
            raise RuntimeError(
                "Can only build ExpandedWeights objects of tensors that requires_grad"
            )
        return torch.Tensor._make_subclass(cls, orig_weight.detach(), True)

    def __init__(self, orig_weight: torch.Tensor, batch_size: int, loss_reduction: str) -> None:
        self.orig_weight = orig_weight
        self.batch_size = batch_size
        self.loss_reduction = loss_reduction

    def add_grad_sample(self, grad: torch.Tensor) -> None:
        """Adds gradients of samples, unscaled, to those that the weight has."""
        grad = grad * self.batch_size if self.loss_reduction == "mean" else grad
        known = getattr(self.orig_weight, "grad_sample", None)
        self.orig_weight.grad_sample = grad if known is None else known + grad

    @classmethod
    def __torch_function__(
        cls,
        func: Callable,
        types: tuple[type, ...],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        """Runs the functions of layers; attributes are those of the weight; the rest is refused."""
        if func in _HANDLED:
            return _mapped(func, args, kwargs or {})
        name = getattr(func, "__name__", str(func))
        if name == "__get__":
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        raise RuntimeError(f"Expanded Weights encountered but cannot handle function {name}")


def _check(func: Callable, args: tuple[object, ...], weights: list[ExpandedWeight]) -> int:
    """The size of the batch."""
    name, first = func.__name__, args[0] if args else None
    if not isinstance(first, torch.Tensor) or isinstance(first, ExpandedWeight):
        raise RuntimeError(
            f"Expanded Weights: the input of {name} must be a Tensor and no ExpandedWeight, got "
            f"{type(first).__name__}"
        )
    fewest = _HANDLED[func]
    if func is F.layer_norm:
        fewest = len(args[1]) + 1
    if first.dim() < fewest:
        raise RuntimeError(
            f"Expanded Weights: {name} needs a batch dimension, that is at least {fewest} "
            f"dimensions, got an input of size {tuple(first.shape)}"
        )
    size = first.shape[0]
    if size == 0:
        raise RuntimeError(
            "0 is not a valid batch size for Expanded Weights but got input tensor of "
            f"{tuple(first.shape)}"
        )
    for weight in weights:
        if weight.batch_size != size:
            raise RuntimeError(
                "Expected ExpandedWeights to have batch size matching input but got input batch "
                f"size of {size} with ExpandedWeight of batch size {weight.batch_size}"
            )
    return size


def _without_running_statistics(
    args: tuple[object, ...], kwargs: dict[str, object]
) -> list[object]:
    """The arguments of instance_norm for one sample: statistics of the whole batch that the call
    would update are updated here, once."""
    order = ("input", "running_mean", "running_var", "weight", "bias", "use_input_stats")
    given = {**dict(zip(order, args, strict=False)), **kwargs}
    if given.get("running_mean") is None or not given.get("use_input_stats", True):
        return [*args, *kwargs.values()]
    with torch.no_grad():
        F.instance_norm(
            given["input"],
            given["running_mean"],
            given["running_var"],
            **{k: given[k] for k in ("momentum", "eps") if k in given},
        )
    dropped = ("running_mean", "running_var")
    positional = [None if name in dropped else a for name, a in zip(order, args, strict=False)]
    return [
        *positional,
        *args[len(order) :],
        *(None if name in dropped else a for name, a in kwargs.items()),
    ]


def _mapped(
    func: Callable[..., torch.Tensor], args: tuple[object, ...], kwargs: dict[str, object]
) -> torch.Tensor:
    if "input" in kwargs and not args:
        args, kwargs = (kwargs["input"],), {k: v for k, v in kwargs.items() if k != "input"}
    every = [*args, *kwargs.values()]
    weights = [value for value in every if isinstance(value, ExpandedWeight)]
    size = _check(func, args, weights)
    if any(
        isinstance(v, torch.Tensor) and v.requires_grad and not isinstance(v, ExpandedWeight)
        for v in every[1:]
    ):
        raise RuntimeError(
            "Expanded Weights does not support a mixture of ExpandedWeight parameters and normal "
            "Parameters"
        )
    views = []
    for weight in weights:
        plain = weight.orig_weight.detach()
        view = plain.unsqueeze(0).expand(size, *plain.shape).requires_grad_()
        view.register_hook(weight.add_grad_sample)
        views.append(view)
    names = list(kwargs)
    if func is F.instance_norm:
        every = _without_running_statistics(args, kwargs)

    def one(sample: torch.Tensor, *own: torch.Tensor) -> torch.Tensor:
        source = iter(own)
        given = [next(source) if isinstance(v, ExpandedWeight) else v for v in every]
        given[0] = sample.unsqueeze(0)
        named = dict(zip(names, given[len(args) :], strict=True))
        return func(*given[: len(args)], **named).squeeze(0)

    return torch.func.vmap(one, randomness="different")(args[0], *views)
