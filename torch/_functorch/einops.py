"""torch.func.rearrange: the order of dimensions by a pattern such as "b (h w) c -> b c h w"."""

import re

import torch

__all__ = ["rearrange"]


def _parse(side, pattern):
    """A side of a pattern as a list of groups of names."""
    groups, inside = [], None
    for token in re.findall(r"\(|\)|\.\.\.|\w+|\S", side):
        if token == "(":
            if inside is not None:
                raise ValueError(f"nested parentheses in the pattern {pattern!r}")
            inside = []
        elif token == ")":
            if inside is None:
                raise ValueError(f"unbalanced parentheses in the pattern {pattern!r}")
            groups.append(inside)
            inside = None
        elif token != "..." and token != "1" and not token.isidentifier():
            raise ValueError(f"invalid name {token!r} in the pattern {pattern!r}")
        elif inside is not None:
            inside.append(token)
        else:
            groups.append([] if token == "1" else [token])
    if inside is not None:
        raise ValueError(f"unbalanced parentheses in the pattern {pattern!r}")
    names = [n for g in groups for n in g]
    if len(set(names)) != len(names):
        raise ValueError(f"a name stands twice on one side of the pattern {pattern!r}")
    return groups


def _with_ellipsis(groups, count):
    """The groups with `...` replaced by names for so many dimensions."""
    names = [f"_{k}" for k in range(count)]
    out = []
    for group in groups:
        if group == ["..."]:
            out += [[n] for n in names]
        else:
            out.append([m for n in group for m in (names if n == "..." else [n])])
    return out


def _group_sizes(group, total, lengths, pattern):
    """The sizes of the names in a group, of which one may be left to be worked out."""
    unknown = [n for n in group if n not in lengths]
    if len(unknown) > 1:
        raise ValueError(f"the sizes of {unknown} in the pattern {pattern!r} cannot be inferred")
    known = 1
    for name in group:
        known *= lengths.get(name, 1)
    if unknown:
        if known == 0 or total % known:
            raise ValueError(f"{total} cannot be divided by {known} in the pattern {pattern!r}")
        lengths[unknown[0]] = total // known
    elif known != total:
        raise ValueError(f"a dimension of size {total} does not match {group} in {pattern!r}")
    return [lengths[n] for n in group]


def rearrange(tensor, pattern, **axes_lengths):
    """The tensor with dimensions reordered, split and joined as the pattern says; a sequence of
    tensors is stacked first."""
    if not isinstance(tensor, torch.Tensor):
        tensor = torch.stack(tuple(tensor))
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"the pattern {pattern!r} must have the form 'left -> right'")
    left, right = (_parse(side, pattern) for side in sides)
    has_ellipsis = any("..." in g for g in left)
    covered = len(left) - has_ellipsis
    if tensor.dim() < covered or (not has_ellipsis and tensor.dim() != covered):
        raise ValueError(f"the pattern {pattern!r} does not fit a tensor of {tensor.dim()} dims")
    left = _with_ellipsis(left, tensor.dim() - covered)
    right = _with_ellipsis(right, tensor.dim() - covered)
    names = [n for g in left for n in g]
    if sorted(names) != sorted(n for g in right for n in g):
        raise ValueError(f"the two sides of the pattern {pattern!r} have different names")
    lengths = dict(axes_lengths)
    sizes = [
        s
        for group, total in zip(left, tensor.shape, strict=True)
        for s in _group_sizes(group, total, lengths, pattern)
    ]
    order = [names.index(n) for g in right for n in g]
    out = tensor.reshape(sizes).permute(order)
    final = []
    for group in right:
        size = 1
        for name in group:
            size *= lengths[name]
        final.append(size)
    return out.reshape(final)
