"""The first interface to operators written in Python; torch.library is its successor."""

from torch._custom_op import impl as impl
