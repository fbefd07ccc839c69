"""The functions of torch.special, as the operators of that family define them."""

from torch._namespace import install as _install

__all__ = _install(globals(), "_special", "special_")
