"""Tests written once for all devices and dtypes: a generic class whose methods take `device` (and
`dtype`, and `op`) becomes one class per device type, with one method per dtype and operator."""

from __future__ import annotations

import enum
import functools
import os
import types
import unittest
from collections import namedtuple
from collections.abc import Callable

import torch
from torch.testing._internal.common_utils import TestCase, lazy_skip_if
from torch.testing._internal.parametrization import _TestParametrizer, dtype_name, make_case

tol = namedtuple("tol", ["atol", "rtol"])


class DeviceTypeTestBase(TestCase):
    """What the class of one device type adds: its devices, and tolerances per dtype."""

    device_type = "generic_device_type"
    _stop_test_suite = False

    @classmethod
    def get_primary_device(cls) -> str:
        return cls.device_type

    @classmethod
    def get_all_devices(cls) -> list[str]:
        return [cls.get_primary_device()]

    @classmethod
    def _init_and_get_primary_device(cls):
        return cls.get_primary_device()

    def has_cudnn(self) -> bool:
        return False


class CPUTestBase(DeviceTypeTestBase):
    device_type = "cpu"


class CUDATestBase(DeviceTypeTestBase):
    device_type = "cuda"

    @classmethod
    def get_primary_device(cls) -> str:
        return "cuda:0"

    @classmethod
    def get_all_devices(cls):
        return [f"cuda:{i}" for i in range(torch.cuda.device_count())]


class MetaTestBase(DeviceTypeTestBase):
    device_type = "meta"


def get_device_type_test_bases():
    """The classes of the devices this machine has."""
    return [CPUTestBase, *([CUDATestBase] if torch.cuda.is_available() else [])]


device_type_test_bases = get_device_type_test_bases()


def filter_desired_device_types(bases, except_for=None, only_for=None):
    """The bases whose device type is allowed."""
    exclude, only = set(_as_list(except_for)), set(_as_list(only_for))
    both = exclude & only
    if both:
        raise RuntimeError(f"device types {sorted(both)} stand in both except_for and only_for")
    found = [b for b in bases if b.device_type not in exclude]
    return [b for b in found if not only or b.device_type in only]


def get_desired_device_type_test_bases(
    except_for=None, only_for=None, include_lazy=False, allow_mps=False, allow_xpu=False
):
    only = only_for or [d for d in os.getenv("PYTORCH_TESTING_DEVICE_ONLY_FOR", "").split(",") if d]
    return filter_desired_device_types(device_type_test_bases, except_for, only or None)


def get_all_device_types():
    return [b.device_type for b in device_type_test_bases]


def _as_list(value) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


# ---- instantiation -----------------------------------------------------------------------------


def instantiate_device_type_tests(
    generic_test_class,
    scope,
    except_for=None,
    only_for=None,
    include_lazy=False,
    allow_mps=False,
    allow_xpu=False,
) -> None:
    """Replaces the generic class in `scope` (globals()) by one class per device type, named
    <Class><DEVICE>; its methods are named <test>[_<parameters>]_<device>[_<dtype>]."""
    scope.pop(generic_test_class.__name__, None)
    bases = get_desired_device_type_test_bases(
        except_for, only_for, include_lazy, allow_mps, allow_xpu
    )
    for base in bases:
        name = generic_test_class.__name__ + base.device_type.upper()
        members = {"__module__": generic_test_class.__module__, "__qualname__": name}
        device_class = type(name, (base, _without_tests(generic_test_class)), members)
        for test_name in _own_tests(generic_test_class):
            _instantiate(device_class, generic_test_class, test_name)
        scope[name] = device_class


def _own_tests(cls) -> list[str]:
    return [
        n
        for n in dir(cls)
        if n.startswith("test") and isinstance(getattr(cls, n), types.FunctionType)
    ]


def _without_tests(cls):
    """The class with its tests hidden; helpers, setUp and the rest stay."""
    hidden = dict.fromkeys(_own_tests(cls))
    return type(cls.__name__, (cls,), {"__module__": cls.__module__, **hidden})


def _instantiate(device_class, generic_class, name) -> None:
    test = getattr(generic_class, name)
    mark = getattr(test, "parametrize_fn", None)
    if mark is None:
        cases = [(test, "", {}, lambda kwargs: [])]
    else:
        cases = mark(test, generic_cls=generic_class, device_cls=device_class)
    table = getattr(test, "dtypes", None)
    for _, suffix, arguments, decorators in cases:
        dtypes = [None]
        if "dtype" not in arguments and table is not None:
            chosen = table.get(device_class.device_type, table.get("all"))
            dtypes = chosen if chosen is not None else [None]
        for dtype in dtypes:
            _add_case(device_class, test, suffix, dict(arguments), decorators, dtype)


def _add_case(device_class, test, suffix, arguments, decorators, dtype) -> None:
    values = dtype if isinstance(dtype, (list, tuple)) else (dtype,)
    if dtype is not None:
        arguments["dtypes" if isinstance(dtype, (list, tuple)) else "dtype"] = dtype
    shown = values if dtype is not None else [arguments.get("dtype")]
    parts = [suffix, device_class.device_type, *(dtype_name(d) for d in shown if d is not None)]
    method = make_case(
        _with_device(test, arguments.get("dtype")),
        "_".join(p for p in parts if p),
        arguments,
        decorators,
    )
    if method.__name__ in device_class.__dict__:
        raise RuntimeError(f"Redefinition of test {method.__name__}")
    setattr(device_class, method.__name__, method)


def _with_device(test, dtype) -> Callable[..., object]:
    """The test with its device filled in, under the tolerances set for the dtype."""

    @functools.wraps(test)
    def run(self, **kwargs):
        before = self.precision, self.rel_tol
        override = getattr(test, "tolerance_overrides", {}).get(dtype)
        precision = getattr(test, "precision_overrides", {}).get(dtype)
        if override is not None:
            self.precision, self.rel_tol = override
        if precision is not None:
            self.precision = precision
        try:
            wants_all = getattr(test, "num_required_devices", None)
            devices = self.get_all_devices()
            if wants_all is not None and len(devices) < wants_all:
                raise unittest.SkipTest(f"fewer than {wants_all} devices detected")
            device = self.get_primary_device() if wants_all is None else devices
            first = {"devices": device} if wants_all is not None else {"device": device}
            return test(self, *first.values(), **kwargs)
        finally:
            self.precision, self.rel_tol = before

    return run


# ---- what a test runs with ---------------------------------------------------------------------


class dtypes:
    """@dtypes(torch.float32, torch.int64), or pairs for tests that take several."""

    def __init__(self, *args, device_type="all") -> None:
        if args and isinstance(args[0], (list, tuple)):
            if not all(isinstance(a, (list, tuple)) for a in args):
                raise AssertionError("all dtype variants must be the same kind")
        self.args, self.device_type = args, device_type

    def __call__(self, fn) -> Callable[..., object]:
        table = getattr(fn, "dtypes", {})
        if self.device_type in table:
            raise RuntimeError(f"dtypes redefinition for {self.device_type}")
        fn.dtypes = {**table, self.device_type: self.args}
        return fn


class dtypesIfCPU(dtypes):
    def __init__(self, *args) -> None:
        super().__init__(*args, device_type="cpu")


class dtypesIfCUDA(dtypes):
    def __init__(self, *args) -> None:
        super().__init__(*args, device_type="cuda")


class dtypesIfMPS(dtypes):
    def __init__(self, *args) -> None:
        super().__init__(*args, device_type="mps")


class dtypesIfXPU(dtypes):
    def __init__(self, *args) -> None:
        super().__init__(*args, device_type="xpu")


class dtypesIfHPU(dtypes):
    def __init__(self, *args) -> None:
        super().__init__(*args, device_type="hpu")


class dtypesIfPRIVATEUSE1(dtypes):
    def __init__(self, *args) -> None:
        super().__init__(*args, device_type="privateuse1")


class OpDTypes(enum.Enum):
    """Which dtypes of an operator @ops runs a test with."""

    supported = 0
    unsupported = 1
    supported_backward = 2
    unsupported_backward = 3
    any_one = 4
    none = 5
    any_common_cpu_cuda_one = 6


_ALL_DTYPES = tuple(
    getattr(torch, n)
    for n in (
        "float64 float32 float16 bfloat16 complex64 complex128 int64 int32 int16 int8 uint8 bool"
    ).split()
)
_BACKWARD = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
             torch.complex128)  # fmt: skip


def _dtypes_for(op, which, device_type):
    supported = op.supported_dtypes(device_type)
    backward = [d for d in supported if op.supports_autograd and d in _BACKWARD]
    if which is OpDTypes.none:
        return [None]
    if which in (OpDTypes.any_one, OpDTypes.any_common_cpu_cuda_one):
        return [next(d for d in (*_ALL_DTYPES, *supported) if d in supported)]
    table = {
        OpDTypes.supported: supported,
        OpDTypes.unsupported: set(_ALL_DTYPES) - set(supported),
        OpDTypes.supported_backward: backward,
        OpDTypes.unsupported_backward: set(_BACKWARD) - set(backward),
    }
    return sorted(table[which], key=str)


class ops(_TestParametrizer):
    """Runs the test for every operator record (argument `op`) and dtype (argument `dtype`)."""

    def __init__(
        self, op_list, *, dtypes=OpDTypes.supported, allowed_dtypes=None, skip_if_dynamo=True
    ) -> None:
        self.op_list, self.opinfo_dtypes = list(op_list), dtypes
        self.allowed_dtypes = set(allowed_dtypes) if allowed_dtypes is not None else None

    def _parametrize_test(self, test, generic_cls=None, device_cls=None):
        if device_cls is None:
            raise RuntimeError("@ops needs instantiate_device_type_tests")
        for op in self.op_list:
            if isinstance(self.opinfo_dtypes, OpDTypes):
                chosen = _dtypes_for(op, self.opinfo_dtypes, device_cls.device_type)
            else:
                chosen = list(self.opinfo_dtypes)
            for dtype in chosen:
                if self.allowed_dtypes is not None and dtype not in self.allowed_dtypes:
                    continue
                arguments = {"op": op} if dtype is None else {"op": op, "dtype": dtype}
                yield test, op.formatted_name, arguments, lambda kwargs, o=op: list(o.decorators)


# ---- tolerances --------------------------------------------------------------------------------


class precisionOverride:
    """@precisionOverride({torch.half: 1e-2}): the absolute tolerance of assertEqual."""

    def __init__(self, d) -> None:
        if not all(isinstance(k, torch.dtype) for k in d):
            raise AssertionError("precisionOverride is given dtypes")
        self.table = d

    def __call__(self, fn):
        fn.precision_overrides = self.table
        return fn


class toleranceOverride:
    """@toleranceOverride({torch.float: tol(atol=1e-2, rtol=1e-3)})."""

    def __init__(self, d) -> None:
        if not all(isinstance(v, tol) for v in d.values()):
            raise AssertionError("toleranceOverride is given values of type tol")
        self.table = d

    def __call__(self, fn) -> Callable[..., object]:
        fn.tolerance_overrides = self.table
        return fn


# ---- restrictions and skips ----------------------------------------------------------------------


def _run_unless(condition, reason) -> Callable[..., object]:
    """A decorator that skips when condition(self) holds."""

    def decorator(fn) -> Callable[..., object]:
        @functools.wraps(fn)
        def wrapper(self, *args, **kwargs):
            if condition(self):
                raise unittest.SkipTest(reason)
            return fn(self, *args, **kwargs)

        return wrapper

    return decorator


class onlyOn:
    """Runs on the named device type (or one of several) only."""

    def __init__(self, device_type) -> None:
        self.device_types = _as_list(device_type)

    def __call__(self, fn) -> Callable[..., object]:
        text = f"Only runs on {self.device_types}"
        return _run_unless(lambda self_: self_.device_type not in self.device_types, text)(fn)


def onlyCPU(fn) -> Callable[..., object]:
    return onlyOn("cpu")(fn)


def onlyCUDA(fn):
    return onlyOn("cuda")(fn)


def onlyAccelerator(fn):
    return _run_unless(lambda self: self.device_type in ("cpu", "meta"), "needs an accelerator")(fn)


def onlyMPS(fn):
    return onlyOn("mps")(fn)


def onlyXPU(fn):
    return onlyOn("xpu")(fn)


def onlyHPU(fn):
    return onlyOn("hpu")(fn)


def onlyPRIVATEUSE1(fn):
    return onlyOn("privateuse1")(fn)


def onlyCUDAAndPRIVATEUSE1(fn):
    return onlyOn(("cuda", "privateuse1"))(fn)


NATIVE_DEVICES = ("cpu", "cuda", "xpu", "meta", "privateuse1")


def onlyNativeDeviceTypes(fn):
    return onlyOn(NATIVE_DEVICES)(fn)


def onlyNativeDeviceTypesAnd(devices=None):
    return onlyOn((*NATIVE_DEVICES, *_as_list(devices)))


class skipIf:
    """Skips the test on a device type when dep (a value or a function) is true."""

    def __init__(self, dep, reason, device_type=None) -> None:
        self.dep, self.reason, self.device_type = dep, reason, device_type

    def __call__(self, fn) -> Callable[..., object]:
        @functools.wraps(fn)
        def wrapper(test, *args, **kwargs):
            if self.device_type is None or self.device_type == test.device_type:
                dep = self.dep() if callable(self.dep) else self.dep
                if dep:
                    raise unittest.SkipTest(self.reason)
            return fn(test, *args, **kwargs)

        return wrapper


def _skip_class(name, device_type):
    def __init__(self, dep, reason) -> None:
        skipIf.__init__(self, dep, reason, device_type)

    text = f"Skips on {device_type} when dep is true."
    return type(name, (skipIf,), {"__init__": __init__, "__doc__": text, "__module__": __name__})


skipCPUIf = _skip_class("skipCPUIf", "cpu")
skipCUDAIf = _skip_class("skipCUDAIf", "cuda")
skipGPUIf = _skip_class("skipGPUIf", "cuda")
skipMPSIf = _skip_class("skipMPSIf", "mps")
skipXPUIf = _skip_class("skipXPUIf", "xpu")
skipHPUIf = _skip_class("skipHPUIf", "hpu")
skipMetaIf = _skip_class("skipMetaIf", "meta")
skipLazyIf = _skip_class("skipLazyIf", "lazy")
skipXLAIf = _skip_class("skipXLAIf", "xla")
skipPRIVATEUSE1If = _skip_class("skipPRIVATEUSE1If", "privateuse1")


skipMeta = skipMetaIf(True, "test doesn't work with meta tensors")
skipMPS = skipMPSIf(True, "test doesn't work on MPS backend")
skipXLA = skipXLAIf(True, "Marked as skipped for XLA")
skipXPU = skipXPUIf(True, "test doesn't work on XPU backend")
skipHPU = skipHPUIf(True, "test doesn't work on HPU backend")
skipLazy = skipLazyIf(True, "test doesn't work with lazy tensors")
skipPRIVATEUSE1 = skipPRIVATEUSE1If(True, "test doesn't work on privateuse1 backend")


def skipCPUIfNoLapack(fn):
    """Linear algebra is always built in."""
    return fn


def skipCPUIfNoFFT(fn):
    """Fourier transforms are always built in."""
    return fn


def skipCPUIfNoMkl(fn):
    return skipCPUIf(not torch.backends.mkl.is_available(), "built without MKL support")(fn)


def skipCPUIfNoMklSparse(fn):
    return skipCPUIfNoMkl(fn)


def skipCPUIfNoMkldnn(fn):
    return skipCPUIf(not torch.backends.mkldnn.is_available(), "built without mkldnn support")(fn)


skipCUDAIfNoMagma = skipCUDAIf(True, "no MAGMA library detected")


def skipCUDAIfNoCusolver(fn):
    return skipCUDAIf(not has_cusolver(), "cuSOLVER not available")(fn)


def skipCUDAIfNoMagmaAndNoCusolver(fn):
    return skipCUDAIfNoCusolver(fn)


skipCUDAIfNoMagmaAndNoLinalgsolver = skipCUDAIfNoMagmaAndNoCusolver
skipCUDAIfNoCusolverROCMIfNoMagma = skipCUDAIfNoMagmaAndNoCusolver


def skipCUDAIfNoCudnn(fn):
    return skipCUDAIf(not torch.backends.cudnn.is_available(), "cuDNN not available")(fn)


def skipCUDAIfRocm(func=None, *, msg="test doesn't currently work on the ROCm stack"):
    return (lambda fn: fn) if func is None else func


skipCUDAIfNotRocm = skipCUDAIf(True, "test only runs on the ROCm stack")


def skipCUDAIfMiopen(fn):
    return fn


def has_cusolver():
    return torch.cuda.is_available()


def has_hipsolver() -> bool:
    return False


class expectedFailure:
    """Expects the test to fail on one device type (all when None)."""

    def __init__(self, device_type) -> None:
        self.device_type = device_type

    def __call__(self, fn):
        @functools.wraps(fn)
        def wrapper(test, *args, **kwargs):
            if self.device_type not in (None, test.device_type):
                return fn(test, *args, **kwargs)
            try:
                fn(test, *args, **kwargs)
            except Exception:
                return None
            return test.fail("expected test to fail, but it passed")

        return wrapper


def expectedFailureCPU(fn):
    return expectedFailure("cpu")(fn)


def expectedFailureCUDA(fn):
    return expectedFailure("cuda")(fn)


def expectedFailureMeta(fn):
    return expectedFailure("meta")(fn)


def expectedFailureMPS(fn):
    return expectedFailure("mps")(fn)


def expectedFailureXLA(fn):
    return expectedFailure("xla")(fn)


def expectedFailureXPU(fn):
    return expectedFailure("xpu")(fn)


def expectedFailureHPU(fn):
    return expectedFailure("hpu")(fn)


class deviceCountAtLeast:
    """The test receives all devices, and is skipped when there are fewer."""

    def __init__(self, num_required_devices) -> None:
        self.count = num_required_devices

    def __call__(self, fn):
        fn.num_required_devices = self.count
        return fn


def largeTensorTest(size, device=None, inductor=False):
    """Skips the test when the memory of that many bytes ("10GB") is not there."""
    number = int(size) if isinstance(size, int) else int(float(size[:-2]) * 2 ** (
        {"KB": 10, "MB": 20, "GB": 30}[size[-2:]]))  # fmt: skip

    def enough():
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":") for line in file)
        return int(lines["MemAvailable"].split()[0]) * 1024 >= number

    return lazy_skip_if(lambda: not enough(), f"Insufficient memory for {size}")


def disablecuDNN(fn):
    @functools.wraps(fn)
    def wrapper(self, *args, **kwargs):
        if self.device_type != "cuda" or not self.has_cudnn():
            return fn(self, *args, **kwargs)
        with torch.backends.cudnn.flags(enabled=False):
            return fn(self, *args, **kwargs)

    return wrapper


def disableMkldnn(fn):
    @functools.wraps(fn)
    def wrapper(self, *args, **kwargs):
        with torch.backends.mkldnn.flags(enabled=False):
            return fn(self, *args, **kwargs)

    return wrapper
