"""Records of the foreach family: the list forms of pointwise operators. Dtypes, reference and
interval of each come from the record of the operator on one tensor; what is checked beyond them is
that lists are walked in step, in place too."""

from __future__ import annotations

import numpy as np

import torch

from . import pointwise
from .core import OpInfo, SampleInput, call, error

TOL = {torch.float16: (2e-2, 1e-2), torch.bfloat16: (9e-2, 6e-2), torch.float32: (1e-4, 1e-5)}
_SHAPES = ((2, 3), (4,), ())


def _lists(t, **interval) -> list[torch.Tensor]:
    return [t(*shape, **interval) for shape in _SHAPES]


def _codes(record) -> str:
    """The dtypes of the single form, without bool, whose list forms differ between operators."""
    return "".join(c for c in record.dtype_codes if c in "fic")


def _record(name, samples, ref, base, **options) -> OpInfo:
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
        skips=options.pop("skips", {}),
        errors=lambda t: [
            error(TypeError, "", 1),
            error((RuntimeError, TypeError), "", [1, 2]),
        ],
        **options,
    )


def _unary(base) -> OpInfo:
    name = f"_foreach_{base.name}"
    return _record(name, lambda t: [call(_lists(t))], lambda xs: [base.ref(x) for x in xs], base)


def _binary(base) -> OpInfo:
    name = f"_foreach_{base.name}"
    second = pointwise_second(base.name)

    def samples(t) -> list[SampleInput]:
        low, high = second or (None, None)
        return [call(_lists(t), _lists(t, low=low, high=high)), call(_lists(t), 2)]

    def ref(xs, ys) -> list[np.ndarray | np.generic]:
        ys = ys if isinstance(ys, list) else [ys] * len(xs)
        return [base.ref(x, y) for x, y in zip(xs, ys, strict=True)]

    return _record(name, samples, ref, base)


def pointwise_second(name) -> tuple[float, float] | None:
    """The interval of the right operand in the pointwise table."""
    return next(row[4] for row in pointwise._BINARY if row[0] == name)


def _present(name) -> bool:
    return hasattr(torch, f"_foreach_{name}")


_SINGLE = {r.full_name: r for r in pointwise.RECORDS}
_UNARY = [row[0] for row in pointwise._UNARY if _present(row[0])]
_BINARY = [
    name for name in ("add", "sub", "mul", "div", "pow", "maximum", "minimum") if _present(name)
]


def _ternary(name, function) -> OpInfo:
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


def _list_errors(t):
    return [error(TypeError, "", 1), error((RuntimeError, TypeError), "", [1, 2])]


def _more(name, samples, ref, codes="f", **options) -> OpInfo:
    return OpInfo(
        name,
        samples,
        ref,
        codes,
        op=options.pop("op", None) or getattr(torch, name),
        aten_name=name,
        tolerances=TOL,
        inplace=None,
        errors=options.pop("errors", _list_errors),
        skips=options.pop("skips", {}),
        **options,
    )


def _matrices(t) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    return [t(2, 3), t(4, 1)], [t(3, 2), t(1, 5)]


def _copied(xs, sources, **options) -> list[torch.Tensor]:
    xs = [x.clone() for x in xs]
    torch._foreach_copy_(xs, sources, **options)
    return xs


def _zeroed(xs) -> list[torch.Tensor]:
    xs = [x.clone() for x in xs]
    torch._foreach_zero_(xs)
    return xs


def _limit(name, function) -> OpInfo:
    return _more(
        f"_foreach_clamp_{name}",
        lambda t: [call(_lists(t), _lists(t)), call(_lists(t), 1)],
        lambda xs, ys: [
            function(x, y)
            for x, y in zip(xs, ys if isinstance(ys, list) else [ys] * len(xs), strict=True)
        ],
        "fi",
    )


_LISTS_ONLY = {"expanded": "writes into its first list"}

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
        errors=lambda t: [error(TypeError, "", 1)],
    ),
    _more("_foreach_round", lambda t: [call(_lists(t))], lambda xs: [np.round(x) for x in xs]),
    _limit("min", np.maximum),
    _limit("max", np.minimum),
    _more(
        "_foreach_powsum",
        lambda t: [call(_lists(t)), call(_lists(t), 3)],
        lambda xs, ord=2: [np.sum(np.abs(x) ** ord) for x in xs],
        "d",
        bounds=(0.1, 2.0),
    ),
    _more("_foreach_max", lambda t: [call(_lists(t))], lambda xs: [np.max(x) for x in xs], "fi"),
    _more("_foreach_clone", lambda t: [call(_lists(t))], lambda xs: list(xs), "fibc"),
    _more(
        "_foreach_mm",
        lambda t: [call(*_matrices(t))],
        lambda xs, ys: [x @ y for x, y in zip(xs, ys, strict=True)],
        "d",
        errors=lambda t: [
            error(RuntimeError, "cannot be multiplied|mat1 and mat2", [t(2, 3)], [t(2, 3)]),
            error((RuntimeError, TypeError), "", [t(2, 3)], []),
        ],
    ),
    _more(
        "_foreach_copy",
        lambda t: [call(_lists(t), _lists(t))],
        lambda xs, ys: list(ys),
        "fi",
        op=_copied,
        skips=_LISTS_ONLY,
        grad_codes="",
        generic_errors=False,
        errors=lambda t: [
            error((RuntimeError, TypeError), "", [t(2)], [t(2), t(2)]),
            error((RuntimeError, TypeError), "", [t(2)], 3),
            error(RuntimeError, "must match|size", [t(2)], [t(3)]),
        ],
    ),
    _more(
        "_foreach_zero",
        lambda t: [call(_lists(t))],
        lambda xs: [np.zeros_like(x) for x in xs],
        "fibc",
        op=_zeroed,
        skips=_LISTS_ONLY,
        grad_codes="",
        generic_errors=False,
        errors=lambda t: [
            error((TypeError, AttributeError), "", 1),
            error((TypeError, AttributeError), "", [1, 2]),
            error((TypeError, AttributeError), "", "text"),
        ],
    ),
]
