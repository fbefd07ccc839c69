"""How exactly operators on float32 compute, as a tree of settings: for everything
(torch.backends.fp32_precision), for a library (torch.backends.cudnn, torch.backends.mkldnn), for a
kind of operator in it (torch.backends.cudnn.conv, torch.backends.cuda.matmul). "none" at one place
leaves it to the place above. What comes out is written to the switches that operators read; cuDNN
has one for convolutions and recurrent layers, which allows TF32 where both do."""

from __future__ import annotations

import torch
from torch import _C

__all__ = ["Setting", "effective", "follow_allow_tf32", "own", "restore", "saved", "set_own"]

_ABOVE = {
    "cuda": "generic",
    "cuda.matmul": "cuda",
    "cuda.conv": "cuda",
    "cuda.rnn": "cuda",
    "mkldnn": "generic",
    "mkldnn.matmul": "mkldnn",
    "mkldnn.conv": "mkldnn",
    "mkldnn.rnn": "mkldnn",
}
_CUDNN = ("cuda.conv", "cuda.rnn")
_NAMES = ("none", "ieee", "tf32", "bf16")
# Where nobody said anything cuDNN may use TF32.
_own = dict.fromkeys(("generic", *_ABOVE), "none") | dict.fromkeys(_CUDNN, "default")


def own(place) -> str:
    """What was set at a place itself."""
    return "none" if _own[place] == "default" else _own[place]


def _said(place) -> str:
    """What was set at a place or above it."""
    here = own(place)
    if here != "none" or place not in _ABOVE:
        return here
    return _said(_ABOVE[place])


def effective(place) -> str:
    """What holds at a place."""
    said = _said(place)
    if place == "cuda.matmul":
        # torch.set_float32_matmul_precision may have spoken since.
        if torch.get_float32_matmul_precision() != "highest":
            return "tf32"
        return "ieee" if said == "tf32" else said
    return "tf32" if said == "none" and _own[place] == "default" else said


def set_own(place, precision) -> None:
    """Sets a place, and the switches of operators that follow."""
    if not isinstance(precision, str):
        raise TypeError(f"expected a precision as text, got {type(precision).__name__}")
    if precision not in _NAMES:
        raise RuntimeError(f"Unknown precision: {precision}")
    if precision == "bf16" and place.startswith("cuda"):
        raise RuntimeError("backend 'cuda' does not support precision 'bf16'")
    before = _said("cuda.matmul")
    _own[place] = precision
    after = _said("cuda.matmul")
    if after != before or place == "cuda.matmul":
        torch.set_float32_matmul_precision("high" if after == "tf32" else "highest")
    _tell_cudnn()


def _tell_cudnn() -> None:
    if hasattr(_C, "_set_cudnn_allow_tf32"):
        _C._set_cudnn_allow_tf32(all(effective(place) == "tf32" for place in _CUDNN))


def follow_allow_tf32(allowed) -> None:
    """torch.backends.cudnn.allow_tf32 was set: the older name of both places of cuDNN."""
    granted = "default" if _said("cuda") == "none" else "tf32"
    _own.update(dict.fromkeys(_CUDNN, granted if allowed else "none"))


def saved() -> dict[str, str]:
    """What was set at all places, for `restore`."""
    return dict(_own)


def restore(places) -> None:
    """Puts back what `saved` returned."""
    _own.update(places)
    _tell_cudnn()


class Setting:
    """An object with the precision of a place as its attribute fp32_precision."""

    __slots__ = ("_place",)

    def __init__(self, place) -> None:
        self._place = place

    @property
    def fp32_precision(self) -> str:
        return effective(self._place)

    @fp32_precision.setter
    def fp32_precision(self, precision) -> None:
        set_own(self._place, precision)
