"""Causal masks as small objects: F.scaled_dot_product_attention takes them as attn_mask and
computes without the mask where it can."""

from __future__ import annotations

import enum
import warnings

import torch

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Where the diagonal starts when there are more keys than queries: in the upper left corner,
    so that query 0 sees key 0, or such that the last query sees the last key."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(torch.Tensor):
    """A causal mask of seq_len_q by seq_len_kv that is not stored."""

    def __new__(cls, variant, seq_len_q, seq_len_kv) -> CausalBias:
        return torch.Tensor._make_subclass(cls, torch.empty(0))

    def __init__(self, variant, seq_len_q, seq_len_kv) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError("variant must be a CausalVariant")
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > "
                "seq_len_kv!",
                stacklevel=2,
            )

    @property
    def shape(self):
        return torch.Size((self.seq_len_q, self.seq_len_kv))

    def _materialize(self, device=None) -> torch.Tensor:
        """The mask as a bool tensor, True where a query may look."""
        shift = 0
        if self.variant == CausalVariant.LOWER_RIGHT:
            shift = self.seq_len_kv - self.seq_len_q
        full = torch.ones(self.seq_len_q, self.seq_len_kv, device=device, dtype=torch.bool)
        return torch.tril(full, diagonal=shift)

    @staticmethod
    def _dispatch(
        query,
        key,
        value,
        attn_mask,
        dropout_p=0.0,
        is_causal=False,
        scale=None,
        enable_gqa=False,
    ) -> torch.Tensor:
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        square = attn_mask.seq_len_q == attn_mask.seq_len_kv
        upper = attn_mask.variant == CausalVariant.UPPER_LEFT or square
        # is_causal takes the lengths from the tensors: it stands for the mask only when they agree.
        fits = (query.size(-2), key.size(-2)) == (attn_mask.seq_len_q, attn_mask.seq_len_kv)
        return torch.nn.functional.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=None if upper and fits else attn_mask._materialize(query.device),
            dropout_p=dropout_p,
            is_causal=upper and fits,
            scale=scale,
            enable_gqa=enable_gqa,
        )

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        attend = torch._C._nn.scaled_dot_product_attention
        if func in (torch.nn.functional.scaled_dot_product_attention, attend):
            return cls._dispatch(*args, **kwargs)
        return super().__torch_function__(func, types, args, kwargs)

    def __repr__(self, *, tensor_contents=None) -> str:
        return repr(self._materialize())


def causal_upper_left(*size) -> CausalBias:
    """A causal bias whose diagonal starts in the upper left corner."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size) -> CausalBias:
    """A causal bias whose diagonal ends in the lower right corner."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
