"""More of torch.nn.functional in the scripted language (see _functional): pooling by powers, by
fractions and back, and losses whose Python form chooses by the kind of its arguments."""

from __future__ import annotations

import linecache
import math
import typing

import torch
from torch import Tensor
from torch.jit.annotations import BroadcastingList1, BroadcastingList2, BroadcastingList3

Optional, List, Tuple = typing.Optional, list, tuple
_LISTS = (BroadcastingList1, BroadcastingList2, BroadcastingList3)
FUNCTIONS: dict[str, object] = {}


def _made(name: str, text: str) -> None:
    filename = f"<torch.nn.functional.{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope: dict[str, object] = {**globals(), "F": torch.nn.functional}
    exec(compile(text, filename, "exec"), scope)
    FUNCTIONS[name] = scope[name]


def _lp_pool(n: int) -> str:
    return f"""def lp_pool{n}d(input: Tensor, norm_type: float,
        kernel_size: BroadcastingList{n}[int], stride: Optional[BroadcastingList{n}[int]] = None,
        ceil_mode: bool = False) -> Tensor:
    count = 1
    for size in kernel_size:
        count = count * size
    steps = kernel_size
    if stride is not None:
        steps = stride
    powers = F.avg_pool{n}d(input.pow(norm_type), kernel_size, steps, 0, ceil_mode)
    return (torch.sign(powers) * torch.relu(torch.abs(powers))).mul(count).pow(1.0 / norm_type)
"""


def _fractional(n: int, indices: bool) -> str:
    name = f"fractional_max_pool{n}d"
    returns, tail, label = "Tensor", "[0]", name
    if indices:
        returns, tail, label = "Tuple[Tensor, Tensor]", "", name + "_with_indices"
    sizes = ", ".join(f"int(input.size({d - n}) * output_ratio[{d}])" for d in range(n))
    return f"""def {label}(input: Tensor, kernel_size: BroadcastingList{n}[int],
        output_size: Optional[BroadcastingList{n}[int]] = None,
        output_ratio: Optional[BroadcastingList{n}[float]] = None, return_indices: bool = False,
        _random_samples: Optional[Tensor] = None) -> {returns}:
    if output_size is None:
        if output_ratio is None:
            raise ValueError("{name} requires specifying either an output_size or an output_ratio")
        output_size = [{sizes}]
    if _random_samples is None:
        batch = 1 if input.dim() == {n + 1} else input.size(0)
        _random_samples = torch.rand([batch, input.size({-n - 1}), {n}], dtype=input.dtype,
                                     device=input.device)
    return torch._C._nn.{name}(input, kernel_size, output_size, _random_samples){tail}
"""


def _unpool(n: int) -> str:
    call = {
        1: "torch._C._nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), "
           "size + [1]).squeeze(-1)",
        2: "torch._C._nn.max_unpool2d(input, indices, size)",
        3: "torch._C._nn.max_unpool3d(input, indices, size, steps, padding)",
    }[n]  # fmt: skip
    return f"""def max_unpool{n}d(input: Tensor, indices: Tensor,
        kernel_size: BroadcastingList{n}[int], stride: Optional[BroadcastingList{n}[int]] = None,
        padding: BroadcastingList{n}[int] = 0, output_size: Optional[List[int]] = None) -> Tensor:
    steps = kernel_size
    if stride is not None:
        steps = stride
    size: List[int] = []
    for d in range({n}):
        first = (input.size(d - {n}) - 1) * steps[d]
        size.append(first + kernel_size[d] - 2 * padding[d])
    if output_size is not None:
        wanted = output_size[len(output_size) - {n}:]
        for d in range({n}):
            if wanted[d] <= size[d] - steps[d] or wanted[d] >= size[d] + steps[d]:
                raise ValueError(f"invalid output_size {{output_size}} in dimension {{d}}")
        size = wanted
    return {call}
"""


for _n in (1, 2, 3):
    _made(f"lp_pool{_n}d", _lp_pool(_n))
    _made(f"max_unpool{_n}d", _unpool(_n))
for _n in (2, 3):
    _made(f"fractional_max_pool{_n}d", _fractional(_n, False))
    _made(f"fractional_max_pool{_n}d_with_indices", _fractional(_n, True))
    # Which of the two a call means is decided by its constant return_indices.
    FUNCTIONS[f"fractional_max_pool{_n}d"] = (
        "return_indices", 4, False, FUNCTIONS[f"fractional_max_pool{_n}d_with_indices"],
        FUNCTIONS[f"fractional_max_pool{_n}d"],
    )  # fmt: skip


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    if bool(torch.any(var < 0)):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size() and input.size()[:-1] == var.size():
        var = var.unsqueeze(-1)
    if reduction != "none" and reduction != "mean" and reduction != "sum":
        raise ValueError(f"{reduction} is not valid")
    floor = var.clone()
    with torch.no_grad():
        floor.clamp_(min=eps)
    loss = 0.5 * (torch.log(floor) + (input - target) ** 2 / floor)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    return loss


FUNCTIONS["gaussian_nll_loss"] = gaussian_nll_loss
