"""Records of the fused optimizer steps and of gradient scaling: operators that write into lists of
tensors. A record's operator copies its lists, takes the step and returns what was written; the
reference takes the same step in NumPy by the published formulas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import torch

from .core import OpInfo, SampleInput, call, error

TOL = {torch.float16: (2e-2, 1e-2), torch.bfloat16: (1e-1, 6e-2), torch.float32: (1e-4, 1e-5)}
_META = "writes into its arguments and returns nothing; meta tensors have nothing to write"
_EXPAND = "writes into its arguments: an expanded one has one element for many"
_SHAPES = ((2, 3), (4,), ())


def _lists(t, **interval) -> list[torch.Tensor]:
    return [t(*shape, grad=False, **interval) for shape in _SHAPES]


def _copies(*lists) -> list[list[torch.Tensor]]:
    """Lists to write into. What is no list goes on as it is, for the operator to refuse."""
    return [[x.clone() for x in v] if isinstance(v, list) else v for v in lists]


def _steps(count, value) -> list[torch.Tensor]:
    return [torch.tensor(float(value)) for _ in range(count)]


def _record(name, function, samples, ref, **options) -> OpInfo:
    return OpInfo(
        name,
        samples,
        ref,
        options.pop("codes", "f"),
        op=function,
        aten_name=name,
        tolerances=TOL,
        inplace=None,
        grad_codes="",
        generic_errors=False,
        skips={"meta": _META, "expanded": _EXPAND},
        **options,
    )


def _list_errors(count, **keywords) -> Callable[..., object]:
    """A number or a text for a list, and lists of different lengths."""

    def calls(t):
        lists = [_lists(t) for _ in range(count)]
        return [
            error((TypeError, RuntimeError), "", 3, *lists[1:], **keywords),
            error((TypeError, RuntimeError), "", "text", *lists[1:], **keywords),
            error((TypeError, RuntimeError), "", lists[0][:1], *lists[1:], **keywords),
        ]

    return calls


# ---- steps ----------------------------------------------------------------------------------


def _sgd(params, grads, buffers, **options) -> list[torch.Tensor]:
    params, grads, buffers = _copies(params, grads, buffers)
    torch._fused_sgd_(params, grads, buffers, **options)
    return params + buffers


def _sgd_reference(params, grads, buffers, **o) -> list[np.ndarray | np.generic]:
    moved, kept = [], []
    for p, g, b in zip(params, grads, buffers, strict=True):
        g = (-g if o["maximize"] else g) + o["weight_decay"] * p
        if o["momentum"]:
            b = g if o["is_first_step"] else o["momentum"] * b + (1 - o["dampening"]) * g
            g = g + o["momentum"] * b if o["nesterov"] else b
        moved.append(p - o["lr"] * g)
        kept.append(b)
    return moved + kept


_SGD = {
    "weight_decay": 0.1,
    "momentum": 0.9,
    "lr": 0.01,
    "dampening": 0.0,
    "nesterov": False,
    "maximize": False,
    "is_first_step": False,
}


def _adam(name) -> Callable[..., object]:
    step = getattr(torch, name)

    def function(params, grads, averages, squares, **options) -> list[torch.Tensor]:
        params, grads, averages, squares = _copies(params, grads, averages, squares)
        largest = [s.clone() for s in squares] if options["amsgrad"] else []
        step(params, grads, averages, squares, largest, _steps(len(grads), 3), **options)
        return params + averages + squares

    return function


def _adam_reference(decoupled) -> Callable[..., object]:
    def ref(params, grads, averages, squares, **o) -> list[np.ndarray | np.generic]:
        moved, first, second = [], [], []
        for p, g, m, v in zip(params, grads, averages, squares, strict=True):
            g = -g if o["maximize"] else g
            largest = v
            if decoupled:
                p = p * (1 - o["lr"] * o["weight_decay"])
            else:
                g = g + o["weight_decay"] * p
            m = o["beta1"] * m + (1 - o["beta1"]) * g
            v = o["beta2"] * v + (1 - o["beta2"]) * g * g
            largest = np.maximum(largest, v) if o["amsgrad"] else v
            scale = np.sqrt(largest) / np.sqrt(1 - o["beta2"] ** 3) + o["eps"]
            moved.append(p - o["lr"] / (1 - o["beta1"] ** 3) * m / scale)
            first.append(m)
            second.append(v)
        return moved + first + second

    return ref


_ADAM = {
    "lr": 0.01,
    "beta1": 0.9,
    "beta2": 0.99,
    "weight_decay": 0.1,
    "eps": 1e-4,
    "amsgrad": False,
    "maximize": False,
}


def _adam_record(name, decoupled) -> OpInfo:
    def samples(t) -> list[SampleInput]:
        def lists() -> list[list[torch.Tensor]]:
            return [_lists(t), _lists(t), _lists(t), _lists(t, low=0.1, high=2.0)]

        return [
            call(*lists(), **_ADAM),
            call(*lists(), **{**_ADAM, "amsgrad": True}),
            call(*lists(), **{**_ADAM, "maximize": True, "weight_decay": 0.0}),
        ]

    return _record(
        name, _adam(name), samples, _adam_reference(decoupled), errors=_list_errors(4, **_ADAM)
    )


def _adagrad(params, grads, sums, **options) -> list[torch.Tensor]:
    params, grads, sums = _copies(params, grads, sums)
    torch._fused_adagrad_(params, grads, sums, _steps(len(grads), 4), **options)
    return params + sums


def _adagrad_reference(params, grads, sums, **o) -> list[np.ndarray | np.generic]:
    moved, kept = [], []
    for p, g, s in zip(params, grads, sums, strict=True):
        g = (-g if o["maximize"] else g) + o["weight_decay"] * p
        s = s + g * g
        moved.append(p - o["lr"] / (1 + 3 * o["lr_decay"]) * g / (np.sqrt(s) + o["eps"]))
        kept.append(s)
    return moved + kept


_ADAGRAD = {"lr": 0.01, "lr_decay": 0.1, "weight_decay": 0.1, "eps": 1e-4, "maximize": False}


# ---- gradient scaling -----------------------------------------------------------------------


def _unscale(grads, found, inverse) -> list[torch.Tensor]:
    (grads,) = _copies(grads)
    found = found.clone()
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
    return [*grads, found]


def _unscale_reference(grads, found, inverse) -> list[np.ndarray | np.generic]:
    bad = any(not np.isfinite(g).all() for g in grads)
    return [*(g * inverse[0] for g in grads), np.array([1.0]) if bad else found]


def _numbers(*values, dtype=torch.float32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


def _update(scale, tracker, found, growth, backoff, interval) -> list[torch.Tensor]:
    scale, tracker = scale.clone(), tracker.clone()
    torch._amp_update_scale_(scale, tracker, found, growth, backoff, interval)
    return [scale, tracker]


def _update_reference(
    scale, tracker, found, growth, backoff, interval
) -> list[np.ndarray | np.generic]:
    if found[()] if found.ndim == 0 else found[0]:
        return [scale * backoff, np.zeros_like(tracker)]
    done = int(tracker.reshape(-1)[0]) + 1
    if done == interval:
        return [scale * growth, np.zeros_like(tracker)]
    return [scale, np.full_like(tracker, done)]


def _updates(t) -> list[SampleInput]:
    def one(found, count) -> SampleInput:
        tracker = torch.tensor(count, dtype=torch.int32)
        return call(torch.tensor(8.0), tracker, torch.tensor(found), 2.0, 0.5, 3)

    return [one(0.0, 0), one(0.0, 2), one(1.0, 1)]


RECORDS = [
    _record(
        "_fused_sgd_",
        _sgd,
        lambda t: [
            call(_lists(t), _lists(t), _lists(t), **_SGD),
            call(_lists(t), _lists(t), _lists(t), **{**_SGD, "nesterov": True}),
            call(_lists(t), _lists(t), _lists(t), **{**_SGD, "is_first_step": True}),
            call(_lists(t), _lists(t), _lists(t), **{**_SGD, "maximize": True, "dampening": 0.5}),
        ],
        _sgd_reference,
        errors=_list_errors(3, **_SGD),
    ),
    _adam_record("_fused_adam_", False),
    _adam_record("_fused_adamw_", True),
    _record(
        "_fused_adagrad_",
        _adagrad,
        lambda t: [
            call(_lists(t), _lists(t), _lists(t, low=0.1, high=2.0), **_ADAGRAD),
            call(
                _lists(t), _lists(t), _lists(t, low=0.1, high=2.0), **{**_ADAGRAD, "maximize": True}
            ),
        ],
        _adagrad_reference,
        errors=_list_errors(3, **_ADAGRAD),
    ),
    _record(
        "_amp_foreach_non_finite_check_and_unscale_",
        _unscale,
        lambda t: [call(_lists(t), _numbers(0.0), _numbers(0.25))],
        _unscale_reference,
        errors=lambda t: [
            error((TypeError, RuntimeError), "", 3, _numbers(0.0), _numbers(0.5)),
            error(
                RuntimeError, "1-element|found_inf", _lists(t), _numbers(0.0, 1.0), _numbers(0.5)
            ),
            error(
                RuntimeError, "1-element|inv_scale", _lists(t), _numbers(0.0), _numbers(0.5, 1.0)
            ),
        ],
    ),
    _record(
        "_amp_update_scale_",
        _update,
        _updates,
        _update_reference,
        codes="d",
        big=lambda t: _updates(t)[0],
        errors=lambda t: [
            error((TypeError, AttributeError), "", "text", 1, 2, 2.0, 0.5, 3),
            error(
                RuntimeError,
                "1-element|int|growth_tracker|int32",
                _numbers(8.0),
                _numbers(0.0),
                _numbers(0.0),
                2.0,
                0.5,
                3,
            ),
            error(
                RuntimeError,
                "1-element|scale",
                _numbers(8.0, 9.0),
                _numbers(0, dtype=torch.int32),
                _numbers(0.0),
                2.0,
                0.5,
                3,
            ),
        ],
    ),
]
