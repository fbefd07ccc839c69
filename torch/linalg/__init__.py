"""Linear algebra: the operators of that family under their public names."""

from torch._C import _LinAlgError as LinAlgError
from torch._namespace import install

__all__ = ["LinAlgError", *install(globals(), "_linalg", "linalg_")]
