"""Records of the random family. There is no reference for single values (the streams are checked
against recorded ones elsewhere); each record checks what the distribution promises: range, mean,
and that the seed alone decides the bits."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .core import Maker, OpInfo, call, error

_RANDOM = "draws random numbers: moved inputs do not change the result's distribution"


def _within(low, high) -> Callable[..., object]:
    def check(sample, result) -> None:
        assert bool(((result.float() >= low) & (result.float() <= high)).all())

    return check


def _finite(sample, result) -> None:
    assert bool(torch.isfinite(result.float()).all())


def _op(name, samples, check, codes="f", **options) -> OpInfo:
    options.setdefault("inplace", None)
    options.setdefault("grad_codes", "")
    skips = {"layouts": _RANDOM, **options.pop("skips", {})}
    return OpInfo(name, samples, None, codes, check=check, is_random=True, skips=skips, **options)


def _sized(*more) -> Callable[..., object]:
    return lambda t: [
        call((2, 3), *more, dtype=t.dtype),
        call((0, 3), *more, dtype=t.dtype),
        call((), *more, dtype=t.dtype),
    ]


def _bound(name, *args) -> dict[str, Callable[..., object]]:
    """A Tensor method that fills in place, on a copy."""
    return {
        "op": lambda x, *a, **k: getattr(x.clone(), name)(*a, **k),
        "samples": lambda t: [
            call(t(2, 3), *args),
            call(t(0, 3), *args),
            call(t(), *args),
            call(t(67), *args),
        ],
    }


def _fill(name, method, args, check, errors, codes="f") -> OpInfo:
    parts = _bound(method, *args)
    return _op(
        name,
        parts["samples"],
        check,
        codes,
        op=parts["op"],
        aten_name=method,
        errors=errors,
        covers=(name,),
    )


def _dropout(sample, result) -> None:
    kept = result[result != 0]
    scaled = sample.input[result != 0] / 0.5
    torch.testing.assert_close(kept.float(), scaled.float(), rtol=2e-2, atol=1e-3)


def _no_check(sample, result) -> None:
    assert result.shape == sample.input.shape


_P = lambda t: [
    error((RuntimeError, ValueError), "between 0 and 1", t(2), 1.5),
    error((RuntimeError, ValueError), "between 0 and 1", t(2), -0.5),
]
_META = {"meta": "there is no input tensor: the call names its device"}
_NEGATIVE = lambda t: [error(RuntimeError, "negative", (-1,))]


def _rrelu(sample, result) -> None:
    x = sample.input.float()
    slope = (result.float() / x)[x < 0]
    assert bool((result[x >= 0] == sample.input[x >= 0]).all())
    assert bool(((slope >= 0.1) & (slope <= 0.35)).all())


RECORDS = [
    _op("rand", _sized(), _within(0, 1), "f", skips=_META, errors=_NEGATIVE),
    _op("randn", _sized(), _finite, "f", skips=_META, errors=_NEGATIVE),
    _op(
        "randint",
        lambda t: [call(-3, 7, (2, 3), dtype=t.dtype)],
        _within(-3, 6),
        "fl",
        skips=_META,
        errors=lambda t: [
            error(RuntimeError, "from.*to|expects", 3, 3, (2,)),
            error(RuntimeError, "negative", 0, 3, (-1,)),
        ],
    ),
    _op(
        "randperm",
        lambda t: [call(7, dtype=t.dtype), call(0, dtype=t.dtype)],
        lambda s, r: torch.testing.assert_close(
            r.sort().values.to(torch.int64), torch.arange(len(r))
        ),
        "l",
        skips=_META,
        errors=lambda t: [error(RuntimeError, "negative", -1)],
    ),
    *[
        _op(name, lambda t: [call(t(2, 3)), call(t()), call(t(0, 3))], check, "f", kind="unary")
        for name, check in [("rand_like", _within(0, 1)), ("randn_like", _finite)]
    ],
    _op(
        "randint_like",
        lambda t: [call(t(2, 3), 7), call(t(2, 3), -2, 5)],
        _within(-2, 6),
        "fl",
        errors=lambda t: [error(RuntimeError, "from.*to|expects", t(2), 0)],
    ),
    _op(
        "bernoulli",
        lambda t: [call(t(2, 3)), call(t(2, 3), 0.3), call(t())],
        _within(0, 1),
        "f",
        bounds=(0.1, 0.9),
        grad_codes="d",
        covers=("bernoulli_",),
        supports_gradgrad=False,
        errors=lambda t: [
            error(RuntimeError, "0 <= p|between 0 and 1|expects p|p_in", t(2) + 2),
            error(RuntimeError, "", t(2), 1.5),
        ],
    ),
    _op(
        "normal",
        lambda t: [
            call(t(2, 3), 0.5),
            call(t(2, 3), t(2, 3).abs() + 0.1),
            call(0.0, t(2, 3).abs()),
        ],
        _finite,
        "f",
        generic_errors=False,
    ),
    _op(
        "multinomial",
        lambda t: [call(t(2, 5), 2), call(t(5), 3, True)],
        _within(0, 4),
        "f",
        bounds=(0.1, 2.0),
        big=lambda t: call(_plain(t)(200, 1500), 40),
        errors=lambda t: [
            error(RuntimeError, "without replacement", t(3), 4),
            error(RuntimeError, "n_sample <= 0|cannot sample", t(3), 0),
            error(RuntimeError, "1 or 2 dim|dist", t(2, 2, 2), 1),
        ],
    ),
    _fill(
        "uniform",
        "uniform_",
        (-1.0, 2.0),
        _within(-1, 2),
        lambda t: [error(RuntimeError, "from|expects", t(2), 2.0, 1.0)],
    ),
    _fill(
        "normal_functional",
        "normal_",
        (1.0, 2.0),
        _finite,
        lambda t: [error(RuntimeError, "std", t(2), 0.0, -1.0)],
    ),
    _fill(
        "log_normal",
        "log_normal_",
        (0.0, 0.5),
        _within(0, 1e4),
        lambda t: [error(RuntimeError, "std", t(2), 0.0, -1.0)],
    ),
    _fill(
        "exponential",
        "exponential_",
        (2.0,),
        _within(0, 1e3),
        lambda t: [error(RuntimeError, "lambda", t(2), -1.0)],
    ),
    _fill(
        "cauchy",
        "cauchy_",
        (0.0, 1.0),
        _finite,
        lambda t: [error(RuntimeError, "sigma", t(2), 0.0, -1.0)],
        "d",
    ),
    _fill(
        "geometric",
        "geometric_",
        (0.5,),
        _within(1, 1e3),
        lambda t: [error(RuntimeError, "p to be in|geometric", t(2), 1.5)],
    ),
    _fill(
        "random",
        "random_",
        (-2, 6),
        _within(-2, 5),
        lambda t: [error(RuntimeError, "from|expects", t(2), 3, 3)],
        "fl",
    ),
    _op(
        "nn.functional.dropout",
        lambda t: [call(t(2, 3)), call(t(67)), call(t(0, 3))],
        _dropout,
        grad_codes="d",
        errors=_P,
        covers=("native_dropout", "dropout_"),
        aten_name="dropout",
    ),
    *[
        _op(
            f"nn.functional.{name}",
            lambda t, s=shape: [call(t(*s)), call(t(*s), 0.3)],
            _no_check,
            grad_codes="d",
            covers=covers,
            errors=lambda t, s=shape: [
                error((RuntimeError, ValueError), "between 0 and 1", t(*s), p) for p in (1.5, -0.5)
            ],
        )
        for name, shape, covers in [
            ("dropout1d", (2, 3, 4), ()),
            ("dropout2d", (2, 3, 2, 2), ("feature_dropout", "feature_dropout_")),
            ("dropout3d", (1, 2, 2, 2, 2), ()),
            ("alpha_dropout", (2, 3), ("alpha_dropout_",)),
            ("feature_alpha_dropout", (2, 3, 2), ("feature_alpha_dropout_",)),
        ]
    ],
    _op(
        "nn.functional.rrelu",
        lambda t: [call(t(2, 3), training=True), call(t(67), training=True)],
        _rrelu,
        grad_codes="d",
        covers=("rrelu_", "rrelu_with_noise", "rrelu_with_noise_backward"),
        errors=lambda t: [error((RuntimeError, ValueError), "lower|less", t(2), 0.5, 0.1, True)],
    ),
]


def _counts(sample, result) -> None:
    assert bool(((result >= 0) & (result == result.round())).all())


def _simplex(sample, result) -> None:
    torch.testing.assert_close(
        result.sum(-1).float(), torch.ones(result.shape[:-1]), rtol=2e-2, atol=2e-2
    )


def _pathwise(name, samples, check) -> OpInfo:
    """Draws whose derivative goes through the draw itself: finite differences do not see it."""
    return _op(name, samples, check, "d", op=getattr(torch, name), bounds=(0.5, 3.0))


_DISTRIBUTIONS = {
    "poisson": lambda: _op(
        "poisson",
        lambda t: [call(t(2, 3)), call(t()), call(t(0, 3))],
        _counts,
        "f",
        bounds=(0.0, 4.0),
        kind="unary",
        errors=lambda t: [error(RuntimeError, "non-negative|negative", -t(2) - 1)],
    ),
    "binomial": lambda: _op(
        "binomial",
        lambda t: [call(t(2, 3).round() + 1, t(2, 3) / 4)],
        _counts,
        "d",
        bounds=(0.0, 4.0),
    ),
    "_standard_gamma": lambda: _pathwise(
        "_standard_gamma", lambda t: [call(t(2, 3))], _within(0, 1e3)
    ),
    "_sample_dirichlet": lambda: _pathwise(
        "_sample_dirichlet", lambda t: [call(t(2, 3))], _simplex
    ),
}
RECORDS += [make() for name, make in _DISTRIBUTIONS.items() if hasattr(torch, name)]


def _plain(t) -> Maker:
    t.scale = 1
    return t
