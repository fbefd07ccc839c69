"""Records of the copy family: what moves values between tensors and dtypes. The casts (float(),
half(), ...) stand in the pointwise family, `to` and `clone` in shape."""

import numpy as np

import torch

from .core import OpInfo, call, error

RECORDS = [
    OpInfo(
        "copy_",
        lambda t: [
            call(t(2, 3), t(3)),
            call(t(2, 3), t(2, 3).mT.contiguous().mT),
            call(t(0, 3), t(3)),
            call(t(), t()),
        ],
        lambda a, b: np.broadcast_to(b, a.shape),
        "fibc",
        op=lambda a, b: a.clone().copy_(b),
        aten_name="copy_",
        inplace=None,
        out_dtype="same",
        covers=("copy",),
        errors=lambda t: [
            error(RuntimeError, "must match", t(2), t(3)),
            error(RuntimeError, "output with shape|must match", t(2), t(3, 2)),
        ],
    ),
    OpInfo(
        "type_as",
        lambda t: [call(t(2, 3), t(1)), call(t(2), torch.ones(1, dtype=torch.float64))],
        lambda a, b: a,
        "fib",
        inplace=None,
        grad_codes="d",
    ),
    OpInfo(
        "item",
        lambda t: [call(t()), call(t(1, 1))],
        lambda x: x.reshape(()),
        "fibc",
        grad_codes="",
        inplace=None,
        op=lambda x: torch.tensor(x.item(), dtype=x.dtype),
        covers=("_local_scalar_dense",),
        skips={"meta": "its result is a Python number, which needs values"},
        errors=lambda t: [error(RuntimeError, "cannot be converted to Scalar", t(2))],
    ),
]
