"""Matrix products, attention, normalisation, embedding and losses of jagged nested tensors.

Products with one matrix for all components act on the values. Where every component has its own
matrix, the padded form goes through the batched product. Attention runs over groups of components
of equal lengths, so that no work goes into padding."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.nested._jagged import NestedTensor, from_components
from torch.nested._pointwise import fitting_values
from torch.nested._reduction import full_reduction_of
from torch.nested._registry import implements, name_of, not_implemented
from torch.nested._structure import is_ragged_size


def _product_error(func, a, b):
    return RuntimeError(
        f"{name_of(func)}(): not supported between inputs of shapes {tuple(a.shape)} and "
        f"{tuple(b.shape)}"
    )


@implements("matmul", "__matmul__", "bmm")
def matmul(func, input, other) -> torch.Tensor | NestedTensor:
    """The product over the last two dimensions."""
    a, b = input, other
    if name_of(func) == "bmm" and (a.dim() != 3 or b.dim() != 3):
        raise RuntimeError("batch1 and batch2 must be 3D tensors")
    if a.is_nested and b.is_nested:
        return _nested_product(func, a, b)
    return _left_product(func, a, b) if a.is_nested else _right_product(func, a, b)


@implements("rmatmul")
def rmatmul(func, input, other):
    """other @ input."""
    return matmul(torch.matmul, other, input)


def _left_product(func, a, b) -> NestedTensor:
    """nested @ plain."""
    last = a._ragged_idx == a.ndim - 1
    if b.dim() == 2 and not last:
        return a.like(torch.matmul(a._values, b))
    if b.dim() < 3 or b.dim() > a.ndim or last or a.ndim < 3:
        raise _product_error(func, a, b)
    compact = a._compact()
    if b.dim() == a.ndim and a._ragged_idx == a.ndim - 2:
        if b.size(0) not in (1, a._structure.batch):
            raise RuntimeError(
                f"The size of tensor a ({a._structure.batch}) must match the size of tensor b "
                f"({b.size(0)}) at non-singleton dimension 0"
            )
        return compact._from_padded(torch.matmul(compact._padded(0), b))
    raise _product_error(func, a, b)


def _right_product(func, a, b):
    """plain @ nested."""
    if b._ragged_idx != b.ndim - 1 or a.dim() < 2 or a.dim() > b.ndim:
        raise _product_error(func, a, b)
    compact = b._compact()
    if a.dim() == 2:
        return compact.like(torch.matmul(a, compact._values))
    if a.dim() == b.ndim:
        return compact._from_padded(torch.matmul(a, compact._padded(0)))
    raise _product_error(func, a, b)


def _nested_product(func, a, b):
    """nested @ nested: contracts the ragged dimension, or has one matrix per component."""
    if a._structure.symbol != b._structure.symbol or a.ndim != b.ndim or a.ndim < 3:
        raise _product_error(func, a, b)
    rows, columns = a.ndim - 2, a.ndim - 1
    if a._ragged_idx == columns and b._ragged_idx == rows:
        if a.ndim == 3:
            return _contract(a._compact(), b._compact())
        return torch.matmul(a._compact()._padded(0), b._compact()._padded(0))
    if a._ragged_idx == b._ragged_idx and a._ragged_idx < rows:
        return a.like(torch.matmul(a._values, b._values))
    # What remains would be ragged in both dimensions, or in none that lines up.
    raise _product_error(func, a, b)


def _contract(a, b) -> torch.Tensor:
    """(B, m, j) @ (B, j, n): one small product per component."""
    parts = [torch.mm(x, y) for x, y in zip(a.unbind(), b.unbind(), strict=True)]
    return torch.stack(parts)


@implements("linear")
def linear(func, input, weight, bias=None) -> NestedTensor:
    """x W^T + b over the last dimension."""
    if not isinstance(input, NestedTensor) or input._ragged_idx == input.ndim - 1:
        raise _product_error(func, input, weight)
    return input.like(func(input._values, weight, bias))


@implements("addmm", "baddbmm", "addbmm", "mm", "mv")
def plain_products(func, input, *others, **kwargs):
    """Products whose definition has no batch of differing sizes."""
    raise not_implemented(f"torch.{name_of(func)}", input)


@implements("einsum")
def einsum(func, equation, *operands) -> NestedTensor:
    """Sums of products; one nested operand, whose batch and ragged letters stay."""
    operands = operands[0] if len(operands) == 1 and not _is_tensor(operands[0]) else operands
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    nested = [i for i, t in enumerate(operands) if t.is_nested]
    lead = operands[nested[0]]
    if not arrow or len(nested) != 1 or len(terms) != len(operands) or "." in equation:
        raise not_implemented(f"torch.einsum({equation!r}) of nested tensors", lead)
    term = terms[nested[0]]
    if len(term) != lead.ndim:
        raise RuntimeError(f"einsum(): {term!r} does not fit shape {tuple(lead.shape)}")
    batch, ragged = term[0], term[lead._ragged_idx]
    shared = any(
        letter in t for i, t in enumerate(terms) if i != nested[0] for letter in batch + ragged
    )
    if shared or output[:1] != batch or ragged not in output:
        raise not_implemented(f"torch.einsum({equation!r}) of nested tensors", lead)
    terms[nested[0]] = term[1:]
    plain = list(operands)
    plain[nested[0]] = lead._values
    values = func(f"{','.join(terms)}->{output[1:]}", *plain)
    return lead.like(values, output.index(ragged))


def _is_tensor(value) -> bool:
    return isinstance(value, torch.Tensor)


# ---- layers --------------------------------------------------------------------------------------


@implements("embedding")
def embedding(func, input, weight, *args, **kwargs):
    """Rows of the weight by number, in a new last dimension."""
    if not input.is_nested:
        # The operator's own order of arguments.
        input, weight = weight, input
        return input.like(func(weight, input._values, *args, **kwargs))
    return input.like(func(input._values, weight, *args, **kwargs))


@implements("layer_norm", "rms_norm")
def normalised(func, input, normalized_shape, *args, **kwargs) -> NestedTensor:
    """Normalisation over the last dimensions; with the ragged one, component by component."""
    shape = tuple(normalized_shape)
    if input._ragged_idx < input.ndim - len(shape):
        return input.like(func(input._values, shape, *args, **kwargs))
    expected = tuple(input.shape[input.ndim - len(shape) :])
    if shape != expected or len(shape) >= input.ndim or not any(map(is_ragged_size, shape)):
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape "
            f"[*, {', '.join(map(str, shape))}], but got input of size{list(input.shape)}"
        )
    if any(_is_tensor(a) for a in (*args, *kwargs.values())):
        raise not_implemented(f"{name_of(func)} with a weight over the ragged dimension", input)
    compact = input._compact()
    parts = [func(c, c.shape[-len(shape) :], *args, **kwargs) for c in compact.unbind()]
    return compact.like(torch.cat(parts, compact._ragged_dim))


@implements(
    *"mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy kl_div "
    "binary_cross_entropy_with_logits soft_margin_loss poisson_nll_loss gaussian_nll_loss".split()
)
def loss(func, input, target, *args, **kwargs) -> torch.Tensor | NestedTensor:
    """Losses that compare element by element; the mean is over all elements of all components."""
    lead = input if input.is_nested else target

    def fit(value) -> torch.Tensor:
        return full_reduction_of(value) if _is_tensor(value) else value

    if not (input.is_nested and target.is_nested) or input.shape != target.shape:
        raise RuntimeError(
            f"{name_of(func)}(): expected input and target of the same nested shape, got "
            f"{tuple(input.shape)} and {tuple(target.shape)}"
        )
    compact = lead._compact()
    keep = {
        k: fitting_values(func, compact, v) if _is_tensor(v) and v.dim() else v
        for k, v in kwargs.items()
    }
    found = func(fit(input), fit(target), *map(fit, args), **keep)
    return compact.like(found) if found.dim() else found


@implements("cross_entropy", "nll_loss")
def class_loss(func, input, target, *args, **kwargs):
    """Losses over classes."""
    raise not_implemented(
        f"{name_of(func)} (its class dimension is the second, which is ragged: call it with "
        "values())",
        input if input.is_nested else target,
    )


# ---- attention -----------------------------------------------------------------------------------


@implements("scaled_dot_product_attention")
def scaled_dot_product_attention(
    func,
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    *,
    scale=None,
    enable_gqa=False,
) -> NestedTensor:
    """Attention within every component, over (B, H, j, D)."""
    tensors = (query, key, value)
    if not all(t.is_nested for t in tensors):
        raise ValueError(
            "Expected query, key, and value to be nested tensors, but got query.is_nested: "
            f"{query.is_nested}, key.is_nested: {key.is_nested}, and value.is_nested: "
            f"{value.is_nested} instead."
        )
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")
    if query.ndim == 3:
        # Without heads: (B, j, D) is (B, 1, j, D).
        lifted = [t.unsqueeze(1) for t in tensors]
        options = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale}
        return scaled_dot_product_attention(func, *lifted, **options).squeeze(1)
    if any(t.ndim != 4 or t._ragged_idx != 2 for t in tensors):
        raise RuntimeError(
            "scaled_dot_product_attention: expected nested tensors of shape (batch, heads, "
            f"ragged, features), got {', '.join(str(tuple(t.shape)) for t in tensors)}"
        )
    if key._structure.seqlens != value._structure.seqlens or (
        key._structure.batch != query._structure.batch
    ):
        raise RuntimeError(
            "scaled_dot_product_attention: key and value must have the same lengths, and as many "
            f"components as query, got {', '.join(str(tuple(t.shape)) for t in tensors)}"
        )
    options = {"dropout_p": dropout_p, "is_causal": is_causal}
    if scale is not None:
        options["scale"] = scale
    if enable_gqa:
        options["enable_gqa"] = True
    return _attend(query._compact(), key, value, options)


def _attend(query, key, value, options) -> NestedTensor:
    """Components of equal lengths go through one batched call, each group in turn."""
    lengths = list(zip(query._structure.seqlens, key._structure.seqlens, strict=True))
    groups = {}
    for number, pair in enumerate(lengths):
        groups.setdefault(pair, []).append(number)
    parts = [t.unbind() for t in (query, key, value)]
    done = [None] * len(lengths)
    for members in groups.values():
        batch = (torch.stack([part[m] for m in members]) for part in parts)
        found = F.scaled_dot_product_attention(*batch, **options)
        for member, result in zip(members, found.unbind(0), strict=True):
            done[member] = result
    return from_components(done, 2, query._structure)
