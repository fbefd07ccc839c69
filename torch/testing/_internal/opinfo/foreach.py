"""Records of the foreach family: the list forms of pointwise operators. Dtypes, reference and
interval of each come from the record of the operator on one tensor; what is checked beyond them is
that lists are walked in step, in place too."""

import numpy as np

import torch

from . import pointwise
from .core import OpInfo, call, error

TOL = {torch.float16: (2e-2, 1e-2), torch.bfloat16: (9e-2, 6e-2), torch.float32: (1e-4, 1e-5)}
_SHAPES = ((2, 3), (4,), ())
_SLOW = "one tensor after another: the threads are those of the operator on one tensor"


def _lists(t, **interval):
    return [t(*shape, **interval) for shape in _SHAPES]


def _codes(record):
    """The dtypes of the single form, without bool, whose list forms differ between operators."""
    return "".join(c for c in record.dtype_codes if c in "fic")


def _record(name, samples, ref, base, **options):
    options.setdefault("out_dtype", base.out_dtype)
    return OpInfo(
        name,
        samples,
        ref,
        _codes(base),
        op=getattr(torch, name),
        bounds=base.bounds,
        tolerances={**TOL, **base.tolerances},
        inplace=None,
        grad_codes=base.grad_codes,
        skips={"threads": _SLOW, **options.pop("skips", {})},
        errors=lambda t: [
            error(TypeError, "", 1),
            error((RuntimeError, TypeError), "", [1, 2]),
        ],
        **options,
    )


def _unary(base):
    name = f"_foreach_{base.name}"
    return _record(name, lambda t: [call(_lists(t))], lambda xs: [base.ref(x) for x in xs], base)


def _binary(base):
    name = f"_foreach_{base.name}"
    second = pointwise_second(base.name)

    def samples(t):
        low, high = second or (None, None)
        return [call(_lists(t), _lists(t, low=low, high=high)), call(_lists(t), 2)]

    def ref(xs, ys):
        ys = ys if isinstance(ys, list) else [ys] * len(xs)
        return [base.ref(x, y) for x, y in zip(xs, ys, strict=True)]

    return _record(name, samples, ref, base)


def pointwise_second(name):
    """The interval of the right operand in the pointwise table."""
    return next(row[4] for row in pointwise._BINARY if row[0] == name)


def _present(name):
    return hasattr(torch, f"_foreach_{name}")


_SINGLE = {r.full_name: r for r in pointwise.RECORDS}
_UNARY = [row[0] for row in pointwise._UNARY if _present(row[0])]
_BINARY = [
    name for name in ("add", "sub", "mul", "div", "pow", "maximum", "minimum") if _present(name)
]


def _ternary(name, function):
    return _record(
        f"_foreach_{name}",
        lambda t: [
            call(_lists(t), _lists(t), _lists(t, low=0.5, high=2.0), value=2),
            call(_lists(t), _lists(t), _lists(t, low=0.5, high=2.0)),
        ],
        lambda a, b, c, value=1: [
            function(x, y, z, value) for x, y, z in zip(a, b, c, strict=True)
        ],
        _SINGLE[name],
    )


RECORDS = [
    *[_unary(_SINGLE[name]) for name in _UNARY],
    *[_binary(_SINGLE[name]) for name in _BINARY],
    _ternary("addcmul", lambda x, y, z, value: x + value * y * z),
    _ternary("addcdiv", lambda x, y, z, value: x + value * y / z),
    _record(
        "_foreach_lerp",
        lambda t: [call(_lists(t), _lists(t), 0.3)],
        lambda a, b, w: [x + w * (y - x) for x, y in zip(a, b, strict=True)],
        _SINGLE["lerp"],
    ),
    OpInfo(
        "_foreach_norm",
        lambda t: [call(_lists(t)), call(_lists(t), 1)],
        lambda xs, ord=2: [np.linalg.norm(np.ravel(x), ord) for x in xs],
        "f",
        op=torch._foreach_norm,
        tolerances=TOL,
        skips={"threads": _SLOW},
        errors=lambda t: [error(TypeError, "", 1)],
    ),
]
