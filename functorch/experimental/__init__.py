"""What functorch called experimental: transforms that torch.func has since taken over."""

from torch._functorch.vmap import chunk_vmap
from torch.func import functionalize, replace_all_batch_norm_modules_

__all__ = ["chunk_vmap", "functionalize", "replace_all_batch_norm_modules_"]
