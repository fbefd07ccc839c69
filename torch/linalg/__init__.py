"""Linear algebra: the operators of that family under their public names."""

from torch._C import _LinAlgError as LinAlgError
from torch._namespace import install as _install

__all__ = ["LinAlgError", *_install(globals(), "_linalg", "linalg_")]
