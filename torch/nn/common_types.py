"""Names for annotations of modules: a size or a ratio that may be one number for all dimensions.

Other packages annotate their own layers with them; nothing here depends on them.
"""

from typing import TypeVar

from torch import Tensor

T = TypeVar("T")

_size_any_t = int | tuple[int, ...]
_size_any_opt_t = int | None | tuple[int | None, ...]
_ratio_any_t = float | tuple[float, ...]
_tensor_list_t = Tensor | tuple[Tensor, ...]
_scalar_or_tuple_any_t = T | tuple[T, ...]

_size_1_t = int | tuple[int]
_scalar_or_tuple_1_t = T | tuple[T]

_size_2_t = int | tuple[int, int]
_size_2_opt_t = int | None | tuple[int | None, int | None]
_ratio_2_t = float | tuple[float, float]
_maybe_indices_t = Tensor | tuple[Tensor, Tensor]
_scalar_or_tuple_2_t = T | tuple[T, T]

_size_3_t = int | tuple[int, int, int]
_size_3_opt_t = int | None | tuple[int | None, int | None, int | None]
_ratio_3_t = float | tuple[float, float, float]
_scalar_or_tuple_3_t = T | tuple[T, T, T]

_size_4_t = int | tuple[int, int, int, int]
_scalar_or_tuple_4_t = T | tuple[T, T, T, T]

_size_5_t = int | tuple[int, int, int, int, int]
_scalar_or_tuple_5_t = T | tuple[T, T, T, T, T]

_size_6_t = int | tuple[int, int, int, int, int, int]
_scalar_or_tuple_6_t = T | tuple[T, T, T, T, T, T]
