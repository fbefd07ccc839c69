"""The functions of torch.special, as the operators of that family define them."""

from torch._namespace import install

__all__ = install(globals(), "_special", "special_")
