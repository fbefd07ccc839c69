"""Helpers for tests: comparing tensors and making random ones."""

from torch._file_check import FileCheck
from torch.testing._comparison import assert_allclose, assert_close
from torch.testing._creation import make_tensor

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
