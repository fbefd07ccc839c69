"""Permutations around matrix products: a product that reads or returns a transposed matrix is told
so, instead of the matrix being copied. They run when config.permute_fusion asks for them, and users
may call them on graphs of their own that have shapes (torch.fx.passes.shape_prop)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import fx
from torch.nn import functional as F

__all__ = [
    "linear_permute_fusion",
    "linear_transpose",
    "permute_linear_fusion",
    "permute_matmul_fusion",
    "sink_cat_after_pointwise",
    "transpose_linear",
    "transpose_matmul",
]

_POINTWISE = (torch.relu, torch.tanh, F.relu, F.tanh)
_POINTWISE_METHODS = ("relu", "tanh")
_PRODUCTS = (torch.bmm, torch.matmul)


# ---- what stands for a product and a permutation --------------------------------------------


def linear_transpose(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """linear(input, weight, bias) with the last two dimensions exchanged."""
    found = torch.matmul(weight, input.transpose(-1, -2))
    return found if bias is None else found + bias.unsqueeze(-1)


def transpose_linear(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """linear of the input with its last two dimensions exchanged."""
    found = torch.matmul(input.transpose(-1, -2), weight.t())
    return found if bias is None else found + bias


def transpose_matmul(A: torch.Tensor, B: torch.Tensor, Atrans: bool, Btrans: bool) -> torch.Tensor:
    """The product of matrices, each of which may be transposed first."""
    left = A.transpose(-1, -2) if Atrans else A
    right = B.transpose(-1, -2) if Btrans else B
    return torch.matmul(left, right)


# ---- graphs ---------------------------------------------------------------------------------


def _rank(node: fx.Node) -> int | None:
    found = node.meta.get("tensor_meta")
    if found is not None:
        return len(found.shape)
    value = node.meta.get("example_value", node.meta.get("val"))
    return value.dim() if isinstance(value, torch.Tensor) else None


def _transposes(node: object) -> bool:
    """Whether a node exchanges the last two dimensions of a tensor of at least three."""
    if not isinstance(node, fx.Node) or node.op != "call_method":
        return False
    rank = _rank(node)
    if rank is None or rank < 3:
        return False
    numbers = [a for a in node.args[1:] if isinstance(a, int)]
    places = [n % rank for n in numbers]
    if node.target == "transpose":
        return sorted(places) == [rank - 2, rank - 1]
    if node.target != "permute" or len(places) != rank:
        return False
    return places == [*range(rank - 2), rank - 1, rank - 2]


def _named(node: fx.Node, names: tuple[str, ...]) -> list[object]:
    """Arguments by place or name; None where there is none."""
    given = list(node.args) + [None] * (len(names) - len(node.args))
    return [
        value if value is not None else node.kwargs.get(name)
        for name, value in zip(names, given, strict=True)
    ]


def _exchange(node: fx.Node, function: Callable, args: tuple) -> None:
    with node.graph.inserting_before(node):
        made = node.graph.call_function(function, args)
    made.meta.update(node.meta)
    node.replace_all_uses_with(made)
    node.graph.erase_node(node)


def _finished(module: fx.GraphModule) -> fx.GraphModule:
    module.graph.eliminate_dead_code()
    module.graph.lint()
    module.recompile()
    return module


def linear_permute_fusion(module: fx.GraphModule) -> fx.GraphModule:
    """permute(linear(x, w, b)) becomes linear_transpose(x, w, b)."""
    for node in list(module.graph.nodes):
        if not _transposes(node):
            continue
        linear = node.args[0]
        if linear.target is F.linear and len(linear.users) == 1:
            _exchange(node, linear_transpose, tuple(_named(linear, ("input", "weight", "bias"))))
    return _finished(module)


def permute_linear_fusion(module: fx.GraphModule) -> fx.GraphModule:
    """linear(permute(x), w, b) becomes transpose_linear(x, w, b)."""
    for node in list(module.graph.nodes):
        if node.target is not F.linear:
            continue
        given, weight, bias = _named(node, ("input", "weight", "bias"))
        if _transposes(given):
            _exchange(node, transpose_linear, (given.args[0], weight, bias))
    return _finished(module)


def permute_matmul_fusion(module: fx.GraphModule) -> fx.GraphModule:
    """Products of permuted matrices become transpose_matmul of the matrices."""
    for node in list(module.graph.nodes):
        if node.target not in _PRODUCTS:
            continue
        names = ("input", "mat2") if node.target is torch.bmm else ("input", "other")
        left, right = _named(node, names)
        turned = [_transposes(left), _transposes(right)]
        if not any(turned):
            continue
        sources = [n.args[0] if t else n for n, t in zip((left, right), turned, strict=True)]
        _exchange(node, transpose_matmul, (*sources, *turned))
    return _finished(module)


def _is_pointwise(node: fx.Node) -> bool:
    if node.op == "call_function":
        return node.target in _POINTWISE
    return node.op == "call_method" and node.target in _POINTWISE_METHODS


def _through_views(node: fx.Node) -> fx.Node:
    while len(node.users) == 1:
        (user,) = node.users
        if user.op != "call_method" or user.target != "view":
            break
        node = user
    return node


def sink_cat_after_pointwise(module: fx.GraphModule) -> fx.GraphModule:
    """tanh(cat([x, y])) becomes cat([tanh(x), tanh(y)]), which fuses with what makes x and y."""
    for cat in list(module.graph.nodes):
        if cat.target not in (torch.cat, torch.concat):
            continue
        tensors, dim = _named(cat, ("tensors", "dim"))
        end = _through_views(cat)
        users = list(end.users)
        if len(users) != 1 or not _is_pointwise(users[0]) or not isinstance(tensors, (list, tuple)):
            continue
        (user,) = users
        rest = user.args[1:]
        with module.graph.inserting_before(cat):
            applied = [
                module.graph.create_node(user.op, user.target, (t, *rest), dict(user.kwargs))
                for t in tensors
            ]
        cat.args = (applied, 0 if dim is None else dim)
        cat.kwargs = {}
        user.replace_all_uses_with(end)
        module.graph.erase_node(user)
    return _finished(module)
