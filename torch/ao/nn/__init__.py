"""Modules with quantized weights, modules that train for them, and fused modules."""

from torch.ao.nn import intrinsic, qat, quantizable, quantized, sparse

__all__ = ["intrinsic", "qat", "quantizable", "quantized", "sparse"]
