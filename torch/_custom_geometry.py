"""Questions about a tensor's shape, device and layout as operators, for subclasses that answer them
in __torch_dispatch__ (see torch/csrc/python/dispatch/custom_geometry.h)."""

from __future__ import annotations

import torch
from torch import _C
from torch.library import Library

_DEFINED = {
    "aten": {
        "size(Tensor self) -> int[]": lambda x: list(x.size()),
        "stride(Tensor self) -> int[]": lambda x: list(x.stride()),
    },
    "prim": {
        "device(Tensor a) -> Device": lambda x: x.device,
        "layout(Tensor a) -> Layout": lambda x: x.layout,
    },
}
_libraries = []
for _namespace, _operators in _DEFINED.items():
    _library = Library(_namespace, "IMPL")  # prim is closed to definitions of others
    for _schema, _function in _operators.items():
        _C._library_define(f"{_namespace}::{_schema}", ())
        _library.impl(_schema.partition("(")[0], _function, "CompositeImplicitAutograd")
    _libraries.append(_library)

_aten, _prim = torch.ops.aten, torch.ops.prim
_QUESTIONS = {
    "sizes": _aten.sym_size.default,
    "strides": _aten.sym_stride.default,
    "offset": _aten.sym_storage_offset.default,
    "dim": _aten.dim.default,
    "numel": _aten.sym_numel.default,
    "elements": _aten.numel.default,
    "contiguous": _aten.is_contiguous.default,
    "contiguous_in_format": _aten.is_contiguous.memory_format,
    "device": _prim.device.default,
    "layout": _prim.layout.default,
}


def ask(tensor: torch.Tensor, question: str, *extra: object) -> object:
    """What the class of a tensor says; None where the stored answer holds."""
    operator, cls = _QUESTIONS[question], type(tensor)
    answer = cls.__torch_dispatch__(operator, (cls,), (tensor, *extra), {})
    if answer is NotImplemented:
        raise TypeError(
            f"Multiple dispatch failed for 'torch.ops.{operator.overloadpacket}'; all "
            f"__torch_dispatch__ handlers returned NotImplemented:\n\n  - tensor subclass {cls}"
        )
    if question == "sizes" and answer is not None and all(type(n) is int for n in answer):
        return torch.Size(answer)
    return tuple(answer) if question == "strides" and answer is not None else answer
