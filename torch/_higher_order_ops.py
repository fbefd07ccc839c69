"""Control flow as operators, computed eagerly: the condition is looked at and one branch runs."""

import torch

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]


def cond(pred, true_fn, false_fn, operands=()):
    """true_fn(*operands) where pred holds, else false_fn(*operands)."""
    if not isinstance(pred, (bool, torch.Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, torch.Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    return true_fn(*operands) if pred else false_fn(*operands)


def while_loop(cond_fn, body_fn, carried_inputs):
    """Repeats carried = body_fn(*carried) while cond_fn(*carried) holds."""
    carried = tuple(carried_inputs)
    while cond_fn(*carried):
        result = body_fn(*carried)
        carried = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if len(carried) != len(carried_inputs):
            raise RuntimeError(
                f"body_fn should return {len(carried_inputs)} values, but got {len(carried)}"
            )
    return carried


def map(f, xs, *args):
    """f of each slice of xs along dimension 0, stacked."""
    from torch.utils import _pytree as pytree

    leaves, spec = pytree.tree_flatten(xs)
    length = leaves[0].shape[0]
    results = [f(pytree.tree_unflatten([t[i] for t in leaves], spec), *args) for i in range(length)]
    return pytree.tree_map(lambda *parts: torch.stack(parts), *results)


def scan(combine_fn, init, xs, *, dim=0, reverse=False):
    """carry, y = combine_fn(carry, x) along dim of xs; the last carry and all y stacked."""
    from torch.utils import _pytree as pytree

    leaves, spec = pytree.tree_flatten(xs)
    places = range(leaves[0].shape[dim])
    carry, outputs = init, []
    for i in reversed(places) if reverse else places:
        x = pytree.tree_unflatten([t.select(dim, i) for t in leaves], spec)
        carry, y = combine_fn(carry, x)
        outputs.append(y)
    if reverse:
        outputs.reverse()
    return carry, pytree.tree_map(lambda *parts: torch.stack(parts), *outputs)


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """Running combinations of xs along dim."""

    def step(carry, x):
        carry = x if carry is None else combine_fn(carry, x)
        return carry, carry

    _, stacked = scan(step, None, xs, dim=dim, reverse=reverse)
    from torch.utils import _pytree as pytree

    return pytree.tree_map(lambda t: t.movedim(0, dim), stacked)
