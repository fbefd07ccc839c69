"""The reduction argument of losses: from its word to the operators' number, and from the two older
flags to the word."""

from __future__ import annotations

import warnings

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction) -> int:
    """0 for "none", 1 for "mean", 2 for "sum"."""
    number = _NUMBERS.get(reduction)
    if number is not None:
        return number
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=3,
        )
        return 1
    raise ValueError(f"{reduction} is not a valid value for reduction")


def legacy_get_string(size_average, reduce, emit_warning=True) -> str:
    """The word for the flags size_average and reduce."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    word = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{word}' instead.",
            stacklevel=4,
        )
    return word


def legacy_get_enum(size_average, reduce, emit_warning=True) -> int:
    """The number for the flags size_average and reduce."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
