"""Wrong calls of operators whose records are made from tables or have little to refuse: name of the
record -> function of a Maker that gives ErrorInputs. They follow what the record itself and its
kind refuse; test/ops/test_op_records.py wants three of them for every operator."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .core import error

_NEGATIVE = "negative dimension|non-negative|must be non-negative"
_RANGE = "Dimension out of range"
_SIZES = "must match the size of tensor b"
_TYPE = "must be|invalid combination|xpected"
_POSITIONAL = "positional argument|takes|expected at most|expected 1 argument|no arguments"


def _whole(t, *shape):
    return t(*shape, dtype=torch.int64)


def _longs(*values):
    return torch.tensor(values)


def _ints(*values):
    return torch.tensor(values, dtype=torch.int32)


def _attribute(*more) -> Callable[..., object]:
    """An attribute read off something that is no tensor, and the shapes it refuses."""

    def calls(t):
        found = [error((TypeError, AttributeError), "str", "text")]
        found += [error((TypeError, AttributeError), "list", [1.0])]
        found += [error((TypeError, AttributeError), "int", 3)]
        return found + [error(RuntimeError, "only supported on matrices", t(*s)) for s in more]

    return calls


def _reflected(t):
    return [
        error(RuntimeError, _SIZES, t(2), t(3)),
        error(TypeError, "str|Tensor", "text", 2),
        error(TypeError, "argument", t(2), 1, 2, 3),
    ]


def _reflected_bits(t):
    return [
        error(RuntimeError, _SIZES, _whole(t, 2), _whole(t, 3)),
        error((RuntimeError, NotImplementedError), "not implemented for", torch.ones(2), 2),
        error(TypeError, "argument", _whole(t, 2), 1, 2, 3),
    ]


def _conversion(t):
    """Methods such as Tensor.float: what they convert to is in their name."""
    return [
        error((TypeError, AttributeError), "str|Tensor", "text"),
        error(TypeError, _TYPE, t(2), memory_format="text"),
        error(RuntimeError, "rank 4", t(2), memory_format=torch.channels_last),
    ]


def _atleast(t):
    return [error(TypeError, _TYPE, 3), error(TypeError, _TYPE, t(2), 3)]


def _no_more_arguments(t):
    return [error(TypeError, _POSITIONAL, t(2), 1)]


def _window(t):
    return [
        error(RuntimeError, _NEGATIVE, -1),
        error(RuntimeError, "floating point", 3, dtype=torch.int64),
        error((TypeError, ValueError), "", "text"),
    ]


def _signal_window(t):
    return [
        error(ValueError, "non-negative", -1),
        error(ValueError, "float32 or float64", 3, dtype=torch.int64),
        error(ValueError, "strided", 3, layout=torch.sparse_coo),
    ]


def _general_cosine(t):
    return [
        error(TypeError, "iterable|Iterable|list", 3, a=3),
        error(ValueError, "empty", 3, a=[]),
        error(ValueError, "non-negative", -1, a=[0.5, 0.5]),
    ]


def _frequencies(t):
    return [error(RuntimeError, _NEGATIVE, -1), error(TypeError, "must be int", "text")]


def _indices(t):
    return [
        error(RuntimeError, "non-negative", -1, 2),
        error(RuntimeError, "non-negative", 2, -1),
        error((RuntimeError, NotImplementedError), "", 2, 2, dtype=torch.float32),
    ]


def _new(t):
    return [error(RuntimeError, _NEGATIVE, t(2), (-1,)), error(TypeError, _TYPE, t(2), "text")]


def _batch_norm(t):
    return [
        error(RuntimeError, "elements not", t(2, 3), t(4), None, None, None, True, 0.1, 1e-5),
        error(RuntimeError, "elements not", t(2, 3), None, None, t(4), t(4), True, 0.1, 1e-5),
        error(IndexError, _RANGE, t(2), None, None, None, None, True, 0.1, 1e-5),
    ]


def _batch_norm_statistics(t):
    running = (torch.zeros(3), torch.ones(3))
    return [
        error(RuntimeError, "elements not", t(2, 3), t(4), None, *running, True, 0.1, 1e-5),
        error((RuntimeError, TypeError), "", t(2, 3), None, None, 3, 4, True, 0.1, 1e-5),
        error((RuntimeError, TypeError), "", "text", None, None, *running, True, 0.1, 1e-5),
    ]


def _factory_of_random(t):
    return [
        error(RuntimeError, _NEGATIVE, (-1,)),
        error(NotImplementedError, "not implemented for 'Long'", (2,), dtype=torch.int64),
        error(TypeError, _TYPE, "text"),
    ]


def _masked_statistic(t):
    return [
        error(IndexError, _RANGE, t(2), 5, unbiased=True),
        error(RuntimeError, "", t(2), 0, unbiased=True, mask=torch.ones(3) > 0),
    ]


def _lp_pool(*shape) -> Callable[..., object]:
    def calls(t):
        return [
            error(RuntimeError, "stride should not be zero", t(*shape), 2, 0),
            error(RuntimeError, "too small|smaller than", t(*shape), 2, 9),
        ]

    return calls


def _upsample(t):
    return [
        error(ValueError, "either size or scale_factor", t(1, 1, 4, 4)),
        error(ValueError, "only one of size or scale", t(1, 1, 4, 4), size=3, scale_factor=2),
        error(RuntimeError, "greater than 0", t(1, 1, 4, 4), size=0),
    ]


def _polygamma(t):
    complex_values = t(2, dtype=torch.complex64)
    return [
        error(RuntimeError, "negative n", -1, t(2)),
        error(NotImplementedError, "not implemented for 'ComplexFloat'", 1, complex_values),
        error(TypeError, _TYPE, 1, 3),
    ]


def _masked_index(t):
    mask = torch.ones(2) > 0
    return [
        error(IndexError, "tensors used as indices", t(2), mask, [t(2)], 0),
        error((RuntimeError, TypeError), _TYPE, t(2), mask, 3, 0),
        error((RuntimeError, TypeError), _TYPE, "text", mask, [_longs(0, 1)], 0),
    ]


def _masked_index_put(t):
    mask = torch.ones(2) > 0
    return [
        error(IndexError, "tensors used as indices", t(2), mask, [t(2)], t(2)),
        error(RuntimeError, "must match", t(2), torch.ones(3) > 0, [_longs(0, 1)], t(2)),
        error((RuntimeError, TypeError), _TYPE, t(2), mask, 3, t(2)),
    ]


def _softmax_gradient(t):
    return [
        error(IndexError, _RANGE, t(2), t(2), 3, torch.float32),
        error((RuntimeError, TypeError), "", t(2), 3, 0, torch.float32),
        error((RuntimeError, TypeError), "", t(2), t(2), "text", torch.float32),
    ]


def _safe_softmax(t):
    return [
        error(IndexError, _RANGE, t(2), 3),
        error((RuntimeError, TypeError), _TYPE, t(2), "text"),
        error(NotImplementedError, "not implemented for", _whole(t, 2), 0),
    ]


def _chunk_cat(t):
    return [
        error(RuntimeError, "non-empty|empty", [], 0, 2),
        error(RuntimeError, "positive|greater|num_chunks", [t(2, 3)], 0, 0),
        error((RuntimeError, TypeError), _TYPE, [t(2, 3)], "text", 2),
    ]


def _aliased(t):
    return [
        error((RuntimeError, TypeError), _TYPE, "text"),
        error((RuntimeError, TypeError), _POSITIONAL, t(2), 2),
        error((RuntimeError, TypeError), "no_such_keyword|nknown", t(2), no_such_keyword=1),
    ]


def _normal(t):
    return [
        error(RuntimeError, "std >= 0", torch.zeros(2), -1.0),
        error(RuntimeError, "must match|broadcast", torch.zeros(2), torch.ones(3)),
        error(TypeError, _TYPE, "text", 1.0),
    ]


_REFLECTED = ("add", "sub", "mul", "div", "mod", "pow")
_CONVERSIONS = "bfloat16 bool byte cdouble cfloat char double float half int long short"
_WINDOWS = "bartlett blackman hamming hann kaiser"
_SIGNAL = """bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming
    hann kaiser nuttall"""

WRONG_CALLS = {
    "H": _attribute((3,), (2, 2, 2)),
    "T": _attribute(),
    "mT": _attribute((3,)),
    "mH": _attribute((3,)),
    **{f"__r{name}__": _reflected for name in _REFLECTED},
    **{f"__r{name}__": _reflected_bits for name in ("and", "or", "xor")},
    "__rmatmul__": lambda t: [
        error(RuntimeError, "cannot be multiplied", t(2, 3), t(2, 3)),
        error(TypeError, "str|Tensor", "text", t(2, 3)),
        error(TypeError, "argument", t(2, 3), t(3, 2), 3),
    ],
    **dict.fromkeys(_CONVERSIONS.split(), _conversion),
    "_chunk_cat": _chunk_cat,
    "alias": _aliased,
    "alias_copy": _aliased,
    **{f"atleast_{n}d": _atleast for n in (1, 2, 3)},
    "clone": lambda t: [error(RuntimeError, "rank 4", t(2), memory_format=torch.channels_last)],
    "contiguous": lambda t: [
        error(RuntimeError, "rank 4", t(2), memory_format=torch.channels_last)
    ],
    **dict.fromkeys(("conj", "ravel", "real", "resolve_conj", "resolve_neg"), _no_more_arguments),
    "detach": _no_more_arguments,
    "diagflat": lambda t: [error(TypeError, "must be int", t(2), 1.5)],
    "nn.utils.rnn.pad_sequence": lambda t: [
        error(RuntimeError, "", []),
        error(RuntimeError, "equal size|must match", [t(2, 3), t(2, 4)]),
        error(RuntimeError, "padding_side", [t(2), t(3)], padding_side="up"),
    ],
    "tile": lambda t: [
        error(RuntimeError, "negative", t(2), (-1,)),
        error(TypeError, "", t(2), 1.5),
    ],
    "to": lambda t: [
        error(RuntimeError, "rank 4", t(2), memory_format=torch.channels_last),
        error(RuntimeError, "device", t(2), "nowhere"),
    ],
    "unsafe_chunk": lambda t: [
        error(RuntimeError, "greater than 0", t(4), 0),
        error(IndexError, _RANGE, t(4), 2, 5),
    ],
    "unsafe_split": lambda t: [
        error(RuntimeError, "non-negative", t(4), -1),
        error(IndexError, _RANGE, t(4), 1, 4),
    ],
    "nan_to_num": lambda t: [error(TypeError, "must be", t(2), nan="text")],
    "round.decimals": lambda t: [error(TypeError, _TYPE, t(2), decimals=1.5)],
    "special.round": lambda t: [error(TypeError, "must be int", t(2), decimals=1.5)],
    "kron": lambda t: [error(TypeError, _TYPE, t(2), 3)],
    "_foreach_norm": lambda t: [error(TypeError, "", [t(2)], "text")],
    "_native_batch_norm_legit": _batch_norm_statistics,
    "native_batch_norm": _batch_norm,
    "_sample_dirichlet": lambda t: [
        error(NotImplementedError, "not implemented for 'Long'", _whole(t, 2))
    ],
    "_standard_gamma": lambda t: [
        error(NotImplementedError, "not implemented for 'Long'", _whole(t, 2))
    ],
    "binomial": lambda t: [
        error(RuntimeError, _SIZES, torch.ones(2), torch.ones(3)),
        error(ValueError, "floating-point", _longs(1, 2), torch.ones(2)),
    ],
    "rand": _factory_of_random,
    "randn": _factory_of_random,
    "randperm": lambda t: [
        error(RuntimeError, "negative dimension", -1),
        error(RuntimeError, "without overflow", 300, dtype=torch.uint8),
        error(TypeError, "must be int", 3.5),
    ],
    "normal": _normal,
    "_softmax_backward_data": _softmax_gradient,
    "torch.ops.aten._safe_softmax.default": _safe_softmax,
    "nn.functional.threshold": lambda t: [
        error(TypeError, "missing", t(2), 1),
        error(TypeError, "must be Number", t(2), "text", 1),
    ],
    "_unsafe_masked_index": _masked_index,
    "_unsafe_masked_index_put_accumulate": _masked_index_put,
    "argwhere": _no_more_arguments,
    "nonzero": lambda t: [error(RuntimeError, "scalar type Long", t(2), out=torch.ones(2))],
    **{f"{name}_window": _window for name in _WINDOWS.split()},
    **{f"signal.windows.{name}": _signal_window for name in _SIGNAL.split()},
    "signal.windows.general_cosine": _general_cosine,
    "fft.fftfreq": _frequencies,
    "fft.rfftfreq": _frequencies,
    "linalg.solve_ex": lambda t: [
        error(RuntimeError, "square", t(2, 3), t(2)),
        error(RuntimeError, "Incompatible shapes", t(2, 2), t(3, 3)),
    ],
    "linalg.tensorsolve": lambda t: [error(RuntimeError, "prod", t(2, 3), t(3))],
    "lu_solve": lambda t: [
        error(RuntimeError, "square", t(2, 2), t(2, 3), _ints(1, 2)),
        error(RuntimeError, "int32", t(2, 2), t(2, 2), _longs(1, 2)),
    ],
    "lu_unpack": lambda t: [
        error(RuntimeError, "int32", t(2, 2), _longs(1, 2)),
        error(RuntimeError, "2 or more dimensions", t(2), _ints(1, 2)),
    ],
    "triangular_solve": lambda t: [
        error(RuntimeError, "at least 2 dimensions", t(2), t(2, 2)),
        error(RuntimeError, "square", t(2, 2), t(2, 3)),
    ],
    "vander": lambda t: [
        error(RuntimeError, "one-dimensional", t(2, 2)),
        error(RuntimeError, "non-negative", t(2), N=-1),
    ],
    "logspace": lambda t: [
        error(RuntimeError, "non-negative", 0, 1, -1),
        error(RuntimeError, "0-dimensional", torch.ones(2), 1, 3),
    ],
    "new_empty": _new,
    "new_ones": _new,
    "new_zeros": _new,
    "new_empty_strided": lambda t: [
        error(RuntimeError, "dimensionality", t(2), (2,), (1, 1)),
        error(RuntimeError, "negative", t(2), (2,), (-1,)),
    ],
    "new_full": lambda t: [
        error(RuntimeError, _NEGATIVE, t(2), (-1,), 0),
        error(TypeError, "must be Number", t(2), (2,), "text"),
    ],
    "scalar_tensor": lambda t: [error(TypeError, "must be Number", "text")],
    "tril_indices": _indices,
    "triu_indices": _indices,
    "zero_": _attribute(),
    "masked.logaddexp": lambda t: [
        error(RuntimeError, "must match|broadcast", t(2), t(3)),
        error((TypeError, AttributeError), "", t(2), "text"),
    ],
    "masked.std": _masked_statistic,
    "masked.var": _masked_statistic,
    "msort": lambda t: [error(TypeError, _POSITIONAL, t(2), 1)],
    "sort.stable": lambda t: [error(IndexError, _RANGE, t(2), stable=True, dim=4)],
    "nn.functional.linear_cross_entropy": lambda t: [
        error((RuntimeError, TypeError), "", t(2, 3), t(4, 5), _longs(0, 1))
    ],
    "nn.functional.lp_pool1d": _lp_pool(1, 1, 4),
    "nn.functional.lp_pool2d": _lp_pool(1, 1, 4, 4),
    "nn.functional.upsample_bilinear": _upsample,
    "nn.functional.upsample_nearest": _upsample,
    "norm_except_dim": lambda t: [error(TypeError, "must be int", t(2, 2), 2, 0.5)],
    "polygamma": _polygamma,
    "special.polygamma": _polygamma,
    "special.logit": lambda t: [error(TypeError, "must be", t(2), "text")],
    "type_as": lambda t: [error(TypeError, _TYPE, t(2), 3)],
}
