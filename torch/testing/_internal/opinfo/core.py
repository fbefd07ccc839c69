"""Op records: what an operator takes and gives, said once and used by every mechanical test.

A record names the operator, its dtypes, a function that makes sample inputs, an independent NumPy
or SciPy reference that computes in double precision, and what the operator supports (out=,
in-place, derivatives). The sample function receives a Maker and writes its calls with it; the same
function serves small samples, samples that require gradients, and, because the Maker can scale
every size, inputs large enough to be split between threads. Whatever a record does not support
stands in it with the reason, so that nothing is left out in silence.
"""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import torch

# ---- dtypes ---------------------------------------------------------------------------------

DTYPE_CODES = {
    "f": (torch.float16, torch.bfloat16, torch.float32, torch.float64),
    "d": (torch.float32, torch.float64),
    "i": (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    "u": (torch.uint16, torch.uint32, torch.uint64),
    "b": (torch.bool,),
    "c": (torch.complex64, torch.complex128),
    "h": (torch.complex32,),
    "l": (torch.int64,),
}
UNSIGNED = (torch.uint8, *DTYPE_CODES["u"])

# Relative and absolute tolerance against a double precision reference.
TOLERANCES = {
    torch.float16: (4e-3, 1e-3),
    torch.bfloat16: (3e-2, 1e-2),
    torch.float32: (2e-5, 2e-6),
    torch.float64: (1e-9, 1e-10),
    torch.complex32: (1e-2, 1e-2),
    torch.complex64: (3e-5, 3e-6),
    torch.complex128: (1e-9, 1e-10),
}


def dtypes_of(codes) -> tuple[torch.dtype, ...]:
    """The dtypes behind a string of codes: f floating, i integers, b bool, c complex, ..."""
    return tuple(dtype for code in codes for dtype in DTYPE_CODES[code])


# ---- samples --------------------------------------------------------------------------------


class SampleInput:
    """One call: the first argument, the other positional ones and the keywords."""

    __slots__ = ("args", "input", "kwargs", "name")

    def __init__(self, input, *values, args=None, kwargs=None, name="", **keywords) -> None:
        self.input = input
        self.args = tuple(args) if args is not None else values
        self.kwargs = dict(kwargs) if kwargs is not None else keywords
        self.name = name

    def __repr__(self) -> str:
        return f"SampleInput({self.summary()})"

    def summary(self) -> str:
        """The call in one line, tensors as dtype and shape."""
        parts = [_describe(v) for v in (self.input, *self.args)]
        return ", ".join(parts + [f"{k}={_describe(v)}" for k, v in self.kwargs.items()])

    def transform(self, f) -> SampleInput:
        """A sample with f applied to every tensor."""
        return SampleInput(
            map_tensors(f, self.input),
            args=map_tensors(f, self.args),
            kwargs=map_tensors(f, self.kwargs),
            name=self.name,
        )

    def tensors(self) -> list[torch.Tensor]:
        found = []
        self.transform(lambda t: found.append(t) or t)
        return found

    def numpy(self) -> SampleInput:
        """The sample with arrays in double precision in place of tensors."""
        return self.transform(to_numpy)

    def noncontiguous(self):
        return self.transform(noncontiguous_like)


@dataclasses.dataclass
class ErrorInput:
    """A call that must fail, with the type and a pattern of the message."""

    sample_input: SampleInput
    error_type: type | tuple = RuntimeError
    error_regex: str = ""


def call(*args, **kwargs) -> SampleInput:
    """A sample of the call op(*args, **kwargs)."""
    return SampleInput(args[0] if args else None, args=args[1:], kwargs=kwargs)


def error(error_type, regex, *args, **kwargs) -> ErrorInput:
    """The call op(*args, **kwargs) must raise error_type with a message that matches."""
    return ErrorInput(call(*args, **kwargs), error_type, regex)


def map_tensors(f, value):
    """The value with f applied to the tensors in its lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        return f(value)
    if type(value) in (list, tuple):
        return type(value)(map_tensors(f, v) for v in value)
    if type(value) is dict:
        return {k: map_tensors(f, v) for k, v in value.items()}
    return value


def flat_tensors(value):
    """The tensors of a result, in order; numbers count as tensors."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flat_tensors(v)]
    return [torch.tensor(value)] if isinstance(value, (bool, int, float, complex)) else []


def flat_arrays(value):
    """The arrays of a reference's result, in order."""
    if isinstance(value, (list, tuple)):
        return [a for v in value for a in flat_arrays(v)]
    return [np.asarray(value)]


def to_numpy(tensor) -> np.ndarray:
    """The tensor's values in the widest type of its kind."""
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if tensor.is_complex():
        return tensor.to(torch.complex128).numpy()
    if tensor.is_floating_point():
        return tensor.to(torch.float64).numpy()
    return tensor.numpy() if tensor.dtype is torch.bool else tensor.numpy().astype(np.int64)


def noncontiguous_like(tensor):
    """The same values with gaps between them in memory, at an offset."""
    if tensor.numel() == 0:
        return tensor.detach().clone().requires_grad_(tensor.requires_grad)
    wide = torch.empty((*tensor.shape, 3), dtype=tensor.dtype, device=tensor.device)
    wide.fill_(True if tensor.dtype is torch.bool else 7)
    view = wide[..., 1]
    view.copy_(tensor.detach())
    return view.requires_grad_(tensor.requires_grad)


def _describe(value) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype)[6:]}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_describe(v) for v in value) + "]"
    return repr(value)


class Maker:
    """Makes the tensors of samples: values from a seeded NumPy generator, spread so that no two of
    a tensor coincide (order statistics and kinks stay clear of ties).

    scale multiplies every size above one, and every number given through n(): relations between the
    shapes of one call survive, which turns a small sample into one that is split between threads.
    """

    def __init__(self, device, dtype, requires_grad=False, seed=0, scale=1, bounds=None) -> None:
        self.device, self.dtype, self.requires_grad = device, dtype, requires_grad
        self.random = np.random.default_rng(seed)
        self.scale, self.bounds, self.limit = scale, bounds, None

    def n(self, count) -> int:
        """A size, scaled as the sizes of tensors are."""
        return count * self.scale if count > 1 else count

    def shape(self, shape) -> tuple[int, ...]:
        """The scaled shape. Above the limit sizes stay: that call is not the one wanted large."""
        scaled = tuple(self.n(s) for s in shape)
        return scaled if self.limit is None or math.prod(scaled) <= self.limit else tuple(shape)

    def __call__(self, *shape, low=None, high=None, dtype=None, grad=True) -> torch.Tensor:
        """A tensor of values in [low, high)."""
        dtype = dtype or self.dtype
        shape = self.shape(shape)
        bounds = self.bounds or (-2.0, 2.0)
        low, high = bounds[0] if low is None else low, bounds[1] if high is None else high
        tensor = torch.from_numpy(self._values(shape, dtype, low, high)).to(self.device, dtype)
        grad = grad and self.requires_grad and (dtype.is_floating_point or dtype.is_complex)
        return tensor.requires_grad_() if grad else tensor

    def _values(self, shape, dtype, low, high) -> np.ndarray:
        if dtype is torch.bool:
            return np.asarray(self.random.random(shape) < 0.5)
        if not (dtype.is_floating_point or dtype.is_complex):
            low = max(math.ceil(2 * low), 0) if dtype in UNSIGNED else math.ceil(2 * low)
            return self.random.integers(low, max(math.ceil(2 * high), low) + 1, shape)
        values = self._spread(shape, low, high)
        if dtype.is_complex:
            values = values + 1j * self._spread(shape, low, high)
        return np.asarray(values)

    def _spread(self, shape, low, high) -> np.ndarray:
        count = math.prod(shape)
        order = self.random.permutation(count) + 0.2 + 0.6 * self.random.random(count)
        return (low + (high - low) * order / max(count, 1)).reshape(shape)

    def index(self, *shape, high, low=0, dtype=torch.int64) -> torch.Tensor:
        """Indices below high (scaled)."""
        values = self.random.integers(low, self.n(high), self.shape(shape))
        return torch.from_numpy(np.asarray(values)).to(self.device, dtype)

    def mask(self, *shape) -> torch.Tensor:
        return torch.from_numpy(np.asarray(self.random.random(self.shape(shape)) < 0.5)).to(
            self.device
        )

    def permutation(self, count) -> torch.Tensor:
        return torch.from_numpy(self.random.permutation(*self.shape((count,)))).to(self.device)

    def real(self) -> torch.dtype:
        """The real dtype of this one."""
        return self.dtype.to_real() if self.dtype.is_complex else self.dtype


_UNEXPECTED = "unexpected keyword|invalid combination|no_such_keyword|missing|xpected Tensor"
_ANY_NUMBER_OF_TENSORS = {
    *("atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors", "meshgrid"),
    *("cartesian_prod", "chain_matmul"),
}
_MISSING = "missing|required|needs an argument|invalid combination|at least|expected"
_NOT_A_TENSOR = "must be Tensor|xpected Tensor|invalid combination|not str|'str'|must be str"

# ---- records --------------------------------------------------------------------------------


def resolve(name):
    """torch.<name>, or the unbound method of Tensor."""
    value = torch
    for part in name.split("."):
        value = getattr(value, part, None)
        if value is None:
            return getattr(torch.Tensor, name, None)
    return value


@dataclasses.dataclass
class OpInfo:
    """The record of one operator.

    samples(t): the calls, made with the Maker t. ref(*arrays, **keywords): the same in NumPy.
    out_dtype: the dtype of the result by that of the inputs: same, float, real, bool, int64,
    acc (integers become int64), or None where the reference says nothing about it.
    errors(t), wrong_calls(t): calls that must fail. big(t): the call of the thread test, where
    scaling the first sample gives none; large_elements: how large it is else. covers: further
    operators of native_functions.yaml that these calls reach. grad_op, grad_outputs, grad_samples:
    what derivatives are checked of, where that is not the operator, all its results, the samples.
    skips: name of a test (or test:dtype) -> reason.
    """

    name: str
    samples: Callable[[Maker], list]
    ref: Callable | None = None
    dtype_codes: str = "fi"
    op: Callable | None = None
    aten_name: str = ""
    family: str = ""
    variant_test_name: str = ""
    kind: str = ""
    out_dtype: Any = None
    bounds: tuple | None = None
    tolerances: Mapping = dataclasses.field(default_factory=dict)
    errors: Callable[[Maker], list] | None = None
    wrong_calls: Callable[[Maker], list] | None = None
    generic_errors: bool = True
    big: Callable[[Maker], Any] | None = None
    large_elements: int = 260_000
    aliases: tuple = ()
    covers: tuple = ()
    supports_out: bool = False
    inplace: str | None = ""
    grad_codes: str = "dc"
    supports_forward_ad: bool = True
    supports_gradgrad: bool = True
    grad_samples: Callable[[Maker], list] | None = None
    grad_op: Callable | None = None
    grad_outputs: int | None = None
    is_random: bool = False
    is_view: bool = False
    check: Callable | None = None
    skips: Mapping = dataclasses.field(default_factory=dict)
    decorators: tuple = ()

    def __post_init__(self) -> None:
        self.op = self.op or resolve(self.name)
        self.aten_name = self.aten_name or self.name.replace("nn.functional.", "").replace(".", "_")
        if self.inplace == "":
            found = hasattr(torch.Tensor, self.name + "_") and not self.name.startswith("_")
            self.inplace = self.name + "_" if found else None
        self.dtypes = dtypes_of(self.dtype_codes)
        differentiable = [d for d in self.dtypes if d.is_floating_point or d.is_complex]
        wanted = dtypes_of(self.grad_codes)
        self.grad_dtypes = tuple(d for d in differentiable if d in wanted and d.itemsize >= 8)
        self.grad_dtypes = tuple(
            d for d in self.grad_dtypes if d in (torch.float64, torch.complex128)
        )
        self.supports_autograd = bool(self.grad_dtypes)

    def add_unsigned(self) -> None:
        """Adds uint16, uint32 and uint64 to a record of integers."""
        if "i" in self.dtype_codes and "u" not in self.dtype_codes and self.ref is not None:
            self.dtype_codes += "u"
            self.dtypes = dtypes_of(self.dtype_codes)

    @property
    def full_name(self) -> str:
        return self.name + (f".{self.variant_test_name}" if self.variant_test_name else "")

    @property
    def formatted_name(self) -> str:
        return self.full_name.replace(".", "_")

    def __repr__(self) -> str:
        return f"OpInfo({self.full_name})"

    def __call__(self, *args, **kwargs) -> torch.Tensor:
        return self.op(*args, **kwargs)

    def apply(self, sample, **kwargs):
        """The operator on a sample."""
        if sample.input is None and not sample.args:
            return self.op(**sample.kwargs, **kwargs)
        return self.op(sample.input, *sample.args, **sample.kwargs, **kwargs)

    def get_op(self):
        return self.op

    def get_method(self):
        return getattr(torch.Tensor, self.name, None)

    def get_inplace(self):
        if not self.inplace:
            return None
        return getattr(torch.Tensor, self.inplace, None) or getattr(torch, self.inplace)

    method_variant = property(get_method)
    inplace_variant = property(get_inplace)

    def supported_dtypes(self, device="cpu") -> set[torch.dtype]:
        return set(self.dtypes)

    def supports_dtype(self, dtype, device="cpu") -> bool:
        return dtype in self.dtypes

    def maker(self, device, dtype, requires_grad=False, scale=1) -> Maker:
        seed = zlib.crc32(self.full_name.encode())
        return Maker(device, dtype, requires_grad, seed, scale, self.bounds)

    def sample_inputs(self, device, dtype, requires_grad=False, **kwargs) -> list[SampleInput]:
        """The sample calls."""
        return self.samples(self.maker(device, dtype, requires_grad))

    reference_inputs = sample_inputs

    def gradient_inputs(self, device, dtype):
        """The samples derivatives are checked on: small ones, with at least one number."""
        chosen = self.grad_samples or self.samples
        found = []
        for sample in chosen(self.maker(device, dtype, True)):
            sizes = [t.numel() for t in sample.tensors() if t.requires_grad]
            if sizes and 0 < sum(sizes) <= 96 and min(sizes) > 0:
                found.append(sample)
        return found

    def large_inputs(self, device, dtype) -> list[SampleInput]:
        """Samples whose largest tensor has about large_elements elements: the one with the largest
        tensor and the one with most dimensions. Empty when there is nothing to enlarge."""
        elements = self.large_elements
        if self.big is not None:
            return [self.big(self.maker(device, dtype))]
        largest = {}
        for index, sample in enumerate(self.sample_inputs(device, dtype)):
            tensor = max(sample.tensors(), key=lambda t: t.numel(), default=None)
            if tensor is not None and tensor.numel() > 1:
                largest[index] = tensor
        if not largest:
            return []
        widest = max(largest, key=lambda i: largest[i].numel())
        deepest = max(largest, key=lambda i: (largest[i].dim(), -i))
        found = []
        for index in sorted({widest, deepest}):
            sides = sum(1 for s in largest[index].shape if s > 1)
            scale = max(2, math.ceil((elements / largest[index].numel()) ** (1 / sides)))
            maker = self.maker(device, dtype, scale=scale)
            maker.limit = 4 * elements
            found.append(self.samples(maker)[index])
        return found

    def error_inputs(self, device="cpu", **kwargs):
        """Calls that must fail: the record's own and those every operator of its kind refuses."""
        dtype = torch.float32 if torch.float32 in self.dtypes else self.dtypes[0]
        tables = [table for table in (self.errors, self.wrong_calls) if table]
        own = [wrong for table in tables for wrong in table(self.maker(device, dtype))]
        return [*own, *(self._generic_errors(device, dtype) if self.generic_errors else ())]

    def _generic_errors(self, device, dtype):
        first = self.sample_inputs(device, dtype)[0]
        if isinstance(first.input, torch.Tensor):
            wrong = SampleInput("text", args=first.args, kwargs=first.kwargs)
            yield ErrorInput(wrong, (TypeError, AttributeError), _NOT_A_TENSOR)
        extra = SampleInput(
            first.input, args=first.args, kwargs={**first.kwargs, "no_such_keyword": 1}
        )
        yield ErrorInput(extra, TypeError, _UNEXPECTED)
        if self.name not in _ANY_NUMBER_OF_TENSORS:
            yield ErrorInput(SampleInput(None), TypeError, _MISSING)
        yield from KIND_ERRORS.get(self.kind, _no_errors)(self.maker(device, dtype))

    def result_dtype(self, dtype):
        """The dtype the record says results have, or None."""
        rule = self.out_dtype
        if not isinstance(rule, str):
            return rule(dtype) if callable(rule) else rule
        exact = not (dtype.is_floating_point or dtype.is_complex)
        table = {
            "same": dtype,
            "float": torch.get_default_dtype() if exact else dtype,
            "real": dtype.to_real() if dtype.is_complex else dtype,
            "float_real": torch.get_default_dtype() if exact else dtype.to_real(),
            "bool": torch.bool,
            "int64": torch.int64,
            "acc": torch.int64 if exact else dtype,
        }
        return table[rule]

    def tolerance(self, dtype):
        return self.tolerances.get(dtype) or TOLERANCES.get(dtype, (0.0, 0.0))

    def skip_reason(self, test, dtype=None):
        short = f"{test}:{str(dtype)[6:]}" if dtype is not None else test
        return self.skips.get(test) or self.skips.get(short)


def _no_errors(t):
    return ()


def _binary_errors(t):
    mismatch = "must match the size of tensor b"
    yield ErrorInput(call(t(2, 3), t(2, 4)), RuntimeError, mismatch)


def _reduce_errors(t):
    yield ErrorInput(call(t(2, 3), 2), IndexError, "Dimension out of range")
    yield ErrorInput(call(t(2, 3), -3), IndexError, "Dimension out of range")


def _dim_errors(t):
    yield ErrorInput(call(t(2, 3), 5), IndexError, "Dimension out of range")


def _unary_errors(t):
    yield ErrorInput(
        call([1.0, 2.0]), (TypeError, AttributeError), "must be Tensor|invalid combination|'list'"
    )


KIND_ERRORS = {
    "binary": _binary_errors,
    "reduce": _reduce_errors,
    "dim": _dim_errors,
    "unary": _unary_errors,
}


# ---- shared sample functions ------------------------------------------------------------------


def unary_samples(t) -> list[SampleInput]:
    """One operand: a matrix, a number, nothing, and a length that fills no vector register."""
    return [call(t(2, 3)), call(t()), call(t(0, 3)), call(t(67))]


def with_arguments(*argument_lists, shape=(2, 3)) -> Callable[..., object]:
    """One operand with each of the given argument lists (a dictionary closes one as keywords)."""

    def samples(t) -> list[SampleInput]:
        calls = []
        for arguments in argument_lists:
            keywords = arguments[-1] if arguments and isinstance(arguments[-1], dict) else {}
            rest = arguments[:-1] if keywords else arguments
            calls.append(call(t(*shape), *rest, **keywords))
        return calls

    return samples


def binary_samples(numbers=(2,), second=None) -> Callable[..., object]:
    """Two operands: equal, broadcast both ways, 0-dim, empty, and a Python number on the right.
    second: the interval of the right operand."""
    low, high = second or (None, None)

    def samples(t) -> list[SampleInput]:
        def right(*shape) -> torch.Tensor:
            return t(*shape, low=low, high=high)

        calls = [
            call(t(2, 3), right(2, 3)),
            call(t(2, 1), right(1, 3)),
            call(t(2, 3), right()),
            call(t(0, 3), right(3)),
            call(t(67), right(67)),
        ]
        return calls + [call(t(2, 3), number) for number in numbers]

    return samples


def reduce_samples(*more, dims=True) -> Callable[..., object]:
    """A reduction: over everything, one dimension, kept, several, of an empty and a 0-dim tensor.
    more: further argument lists on a (2, 3, 4) tensor."""

    def samples(t) -> list[SampleInput]:
        calls = [call(t(2, 3)), call(t(2, 3, 4), 1), call(t(2, 3), 1, True), call(t()), call(t(67))]
        if dims:
            calls += [call(t(2, 3, 4), (0, 2)), call(t(2, 3, 4), dim=(-1,), keepdim=True)]
        return calls + with_arguments(*more, shape=(2, 3, 4))(t)

    return samples


def axis(function, **fixed) -> Callable[..., object]:
    """A NumPy reduction with torch's names for the axis."""

    def ref(x, dim=None, keepdim=False, **kwargs) -> np.ndarray | np.generic:
        dim = tuple(dim) if isinstance(dim, (list, tuple)) else dim
        if np.ndim(x) == 0:
            x, dim, keepdim = np.reshape(x, 1), None, False
        return function(x, axis=dim, keepdims=keepdim, **fixed, **kwargs)

    return ref


def scipy_special(name) -> Callable[..., object]:
    """scipy.special.<name>, imported when it is called."""

    def ref(*args) -> np.ndarray | np.generic:
        import scipy.special

        return getattr(scipy.special, name)(*args)

    return ref
