"""What test files of this system and of projects built on it import: TestCase with comparisons that
know tensors, parametrisation, skips, seeds, temporary files, random matrices."""

from __future__ import annotations

import argparse
import contextlib
import enum
import functools
import gc
import importlib.util
import inspect
import os
import platform
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Set

import torch
from torch.autograd.gradcheck import gradcheck as _gradcheck
from torch.autograd.gradcheck import gradgradcheck as _gradgradcheck
from torch.testing import make_tensor
from torch.testing._comparison import default_tolerances
from torch.testing._internal.matrices import (
    make_fullrank_matrices_with_distinct_singular_values,
    make_symmetric_matrices,
    make_symmetric_pd_matrices,
    random_hermitian_matrix,
    random_hermitian_pd_matrix,
    random_hermitian_psd_matrix,
    random_lowrank_matrix,
    random_matrix,
    random_square_matrix_of_rank,
    random_symmetric_matrix,
    random_symmetric_pd_matrix,
    random_symmetric_psd_matrix,
    random_well_conditioned_matrix,
)
from torch.testing._internal.opinfo.core import noncontiguous_like
from torch.testing._internal.parametrization import (
    compose_parametrize_fns,
    decorateIf,
    dtype_name,
    instantiate_parametrized_tests,
    parametrize,
    reparametrize,
    subtest,
)

__all__ = [
    "TestCase",
    "compose_parametrize_fns",
    "decorateIf",
    "dtype_name",
    "freeze_rng_state",
    "instantiate_parametrized_tests",
    "make_tensor",
    "random_matrix",
    "random_symmetric_matrix",
    "random_symmetric_psd_matrix",
    "random_symmetric_pd_matrix",
    "random_hermitian_matrix",
    "random_hermitian_psd_matrix",
    "random_hermitian_pd_matrix",
    "random_well_conditioned_matrix",
    "random_lowrank_matrix",
    "random_square_matrix_of_rank",
    "make_fullrank_matrices_with_distinct_singular_values",
    "make_symmetric_matrices",
    "make_symmetric_pd_matrices",
    "noncontiguous_like",
    "parametrize",
    "reparametrize",
    "run_tests",
    "subtest",
]

# ---- what this machine and build have --------------------------------------------------------


def _found(name) -> bool:
    return importlib.util.find_spec(name) is not None


SEED = 1234
REPEAT_COUNT = 1
IS_LINUX = sys.platform == "linux"
IS_WINDOWS = sys.platform == "win32"
IS_MACOS = sys.platform == "darwin"
IS_X86 = platform.machine() in ("x86_64", "i386")
IS_ARM64 = platform.machine() in ("arm64", "aarch64")
IS_S390X = platform.machine() == "s390x"
IS_PPC = platform.processor() == "ppc64le"
IS_CI = bool(os.getenv("CI"))
IS_SANDCASTLE = IS_FBCODE = IS_REMOTE_GPU = IS_JETSON = False
TEST_NUMPY = _found("numpy")
TEST_SCIPY = _found("scipy")
TEST_NUMBA = _found("numba")
TEST_FAIRSEQ = TEST_DILL = TEST_MKL = TEST_OPT_EINSUM = False
TEST_CUDA = torch.cuda.is_available()
TEST_MULTIGPU = TEST_CUDA and torch.cuda.device_count() >= 2
TEST_ACCELERATOR = TEST_CUDA
TEST_MULTIACCELERATOR = TEST_MULTIGPU
ACCELERATOR_TYPE = "cuda" if TEST_CUDA else None
TEST_MPS = TEST_XPU = TEST_HPU = TEST_PRIVATEUSE1 = TEST_WITH_ROCM = False
TEST_CUTEDSL = TEST_TRITON_DSL = TEST_CUDA_GRAPH = HAS_TRITON = False
TEST_WITH_ASAN = TEST_WITH_TSAN = TEST_WITH_UBSAN = False
TEST_WITH_TORCHDYNAMO = TEST_WITH_TORCHINDUCTOR = TEST_WITH_CROSSREF = False
TEST_WITH_SLOW = os.getenv("PYTORCH_TEST_WITH_SLOW", "0") == "1"
TEST_SKIP_FAST = os.getenv("PYTORCH_TEST_SKIP_FAST", "0") == "1"
TEST_SKIP_NOARCH = TEST_SAVE_XML = False
GRADCHECK_NONDET_TOL = 1e-12
NO_MULTIPROCESSING_SPAWN = False

numpy_to_torch_dtype_dict = {}
torch_to_numpy_dtype_dict = {}
if TEST_NUMPY:
    import numpy as np

    for _name in (
        "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex64 "
        "complex128"
    ).split():
        _numpy = np.bool_ if _name == "bool" else getattr(np, _name)
        numpy_to_torch_dtype_dict[_numpy] = getattr(torch, _name)
        torch_to_numpy_dtype_dict[getattr(torch, _name)] = _numpy


def numpy_to_torch_dtype(dtype):
    return numpy_to_torch_dtype_dict[np.dtype(dtype).type]


def has_corresponding_torch_dtype(dtype) -> bool:
    return np.dtype(dtype).type in numpy_to_torch_dtype_dict


# ---- skips -----------------------------------------------------------------------------------


def _skip_when(condition, reason) -> Callable[..., object]:
    """A decorator without arguments that skips when the condition holds here."""

    def decorator(fn):
        return unittest.skipIf(condition, reason)(fn)

    return decorator


def _never(*args, **kwargs):
    """A skip for something this system does not have: it never applies. Used plain or called."""
    if len(args) == 1 and not kwargs and inspect.isroutine(args[0]):
        return args[0]
    return lambda fn: fn


skipIfNoSciPy = _skip_when(not TEST_SCIPY, "test requires SciPy, but SciPy not found")
skipIfCompiledWithoutNumpy = _skip_when(not TEST_NUMPY, "test requires NumPy")
skipIfWindows = functools.partial(unittest.skipIf, IS_WINDOWS)
skipIfFreeThreaded = skipIfNoLapack = _never  # linear algebra is always built in
skipIfRocm = skipIfRocmArch = skipIfRocmVersionLessThan = skipIfRocm_BUGGY = _never
skipIfMPS = skipIfHpu = skipIfHpu_BUGGY = skipIfXpu = skipIfXpu_BUGGY = skipIfWindowsXPU = _never
skipIfCrossRef = skipIfTorchInductor = skipIfNNModuleInlined = skipIfLegacyJitExecutor = _never
skipRocmIfTorchInductor = skipIfCachingAllocatorDisabled = skipCUDANonDefaultStreamIf = _never
skipCUDAMemoryLeakCheckIf = runWithoutCompiledAutograd = gcIfJetson = _never
xfailIfTorchDynamo = xpassIfTorchDynamo_np = markDynamoStrictTest = unMarkDynamoStrictTest = _never
make_dynamo_test = setBlasBackendsToDefaultFinally = setLinalgBackendsToDefaultFinally = _never
setSdpaBackendsToDefaultFinally = with_ieee_matmul_precision = recover_orig_fp32_precision = _never
serialTest = _never
skipIfNoXPU = runOnRocm = runOnRocmArch = skipIfNotMiopenSuggestNHWC = _skip_when(
    True, "this build has no such device"
)
skipIfNoXNNPACK = _skip_when(True, "this build has no XNNPACK")


def skipIfTorchDynamo(msg=""):
    """Tests never run under a compiler here."""
    return lambda fn: fn


def skipIfPythonVersionMismatch(predicate):
    return unittest.skipIf(not predicate(*sys.version_info[:3]), "Python version mismatch")


def skip_if_pytest(fn):
    return unittest.skipIf("PYTEST_CURRENT_TEST" in os.environ, "does not work under pytest")(fn)


def lazy_skip_if(condition, reason):
    """skipIf whose condition, a function, is asked when the test runs."""

    def decorator(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            if condition():
                raise unittest.SkipTest(reason)
            return fn(*args, **kwargs)

        return wrapper

    return decorator


def skip_but_pass_in_sandcastle(reason):
    return unittest.skip(reason)


def skip_but_pass_in_sandcastle_if(condition, reason):
    return unittest.skipIf(condition, reason)


def xfailIf(condition) -> Callable[..., object]:
    return lambda fn: unittest.expectedFailure(fn) if condition else fn


xfailIfLinux, xfailIfWindows = xfailIf(IS_LINUX), xfailIf(IS_WINDOWS)
xfailIfPy312Plus = xfailIf(sys.version_info >= (3, 12))
xfailIfACL = xfailIfROCm = xfailIfS390X = xfailIf(False)


def xfail_inherited_tests(tests):
    """Expects the named inherited tests of the class to fail."""

    def decorator(cls):
        for name in tests:
            setattr(cls, name, unittest.expectedFailure(copy_func(getattr(cls, name))))
        return cls

    return decorator


def slowTestIf(condition):
    return slowTest if condition else (lambda fn: fn)


def slowTest(fn):
    """Runs only with PYTORCH_TEST_WITH_SLOW=1."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        if not TEST_WITH_SLOW:
            raise unittest.SkipTest("test is slow; run with PYTORCH_TEST_WITH_SLOW to enable test")
        return fn(*args, **kwargs)

    wrapper.slow_test = True
    return wrapper


def skip_exception_type(exc_type):
    """A context in which that exception skips the test."""

    @contextlib.contextmanager
    def context() -> Iterator[None]:
        try:
            yield
        except exc_type as error:
            raise unittest.SkipTest(f"not implemented: {error}") from error

    return context()


def suppress_warnings(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fn(*args, **kwargs)

    return wrapper


# ---- seeds, defaults, guards -------------------------------------------------------------------


def set_rng_seed(seed=None) -> None:
    """Seeds Python, NumPy and this library."""
    seed = SEED if seed is None else seed
    torch.manual_seed(seed)
    random.seed(seed)
    if TEST_NUMPY:
        np.random.seed(seed)


@contextlib.contextmanager
def freeze_rng_state() -> Iterator[None]:
    """The random streams of this library after the block are those before it."""
    state = torch.get_rng_state()
    device_state = torch.cuda.get_rng_state() if TEST_CUDA else None
    try:
        yield
    finally:
        torch.set_rng_state(state)
        if device_state is not None:
            torch.cuda.set_rng_state(device_state)


@contextlib.contextmanager
def set_default_dtype(dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(dtype)
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def set_default_tensor_type(tensor_type) -> Iterator[None]:
    before = torch.get_default_dtype()
    try:
        torch.set_default_tensor_type(tensor_type)
        yield
    finally:
        torch.set_default_dtype(before)


class DeterministicGuard:
    """Sets the deterministic mode for a block."""

    def __init__(self, deterministic, *, warn_only=False, fill_uninitialized_memory=True) -> None:
        self.wanted = deterministic, warn_only

    def __enter__(self) -> None:
        self.before = (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        )
        torch.use_deterministic_algorithms(self.wanted[0], warn_only=self.wanted[1])

    def __exit__(self, *exc) -> None:
        torch.use_deterministic_algorithms(self.before[0], warn_only=self.before[1])


def wrapDeterministicFlagAPITest(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        with DeterministicGuard(torch.are_deterministic_algorithms_enabled()):
            return fn(*args, **kwargs)

    return wrapper


@contextlib.contextmanager
def disable_gc() -> Iterator[None]:
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextlib.contextmanager
def set_cwd(path) -> Iterator[None]:
    before = os.getcwd()
    try:
        os.chdir(path)
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def set_warn_always_context(new_val) -> Iterator[None]:
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(new_val)
    try:
        yield
    finally:
        torch.set_warn_always(before)


@contextlib.contextmanager
def TemporaryFileName(*args, **kwargs):
    """The path of a file that exists and is removed at the end of the block."""
    handle, path = tempfile.mkstemp(*args, **kwargs)
    os.close(handle)
    try:
        yield path
    finally:
        if os.path.exists(path):
            os.unlink(path)


@contextlib.contextmanager
def TemporaryDirectoryName(suffix=None):
    with tempfile.TemporaryDirectory(suffix=suffix) as path:
        yield path


class ProfilingMode(enum.Enum):
    LEGACY = 1
    SIMPLE = 2
    PROFILING = 3


# ---- functions and processes -------------------------------------------------------------------


def copy_func(f):
    """A function of its own with the same code."""
    import types

    copied = types.FunctionType(
        f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__
    )
    copied.__dict__.update(f.__dict__)
    copied.__kwdefaults__ = f.__kwdefaults__
    return copied


def get_function_arglist(func):
    return inspect.getfullargspec(func).args


def is_iterable(value) -> bool:
    try:
        iter(value)
    except TypeError:
        return False
    return True


def is_iterable_of_tensors(iterable, include_empty=False):
    if isinstance(iterable, torch.Tensor) or not is_iterable(iterable):
        return False
    items = list(iterable)
    return (bool(items) or include_empty) and all(isinstance(t, torch.Tensor) for t in items)


def iter_indices(tensor):
    """Every index of the tensor."""
    import itertools

    if tensor.dim() == 1:
        return range(tensor.size(0))
    return itertools.product(*(range(s) for s in tensor.size()))


def clone_input_helper(value):
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return type(value)(map(clone_input_helper, value))
    return value


def first_sample(test, samples):
    """The first sample; skips the test when there is none."""
    found = next(iter(samples), None)
    if found is None:
        raise unittest.SkipTest("Skipped! Need at least 1 sample input")
    return found


def retry(ExceptionToCheck, tries=3, delay=3, skip_after_retries=False):
    """Calls again after that exception, with a pause."""

    def decorator(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            for left in range(tries - 1, -1, -1):
                try:
                    return fn(*args, **kwargs)
                except ExceptionToCheck as error:
                    if not left:
                        if skip_after_retries:
                            raise unittest.SkipTest(
                                f"Skipping after {tries} tries: {error}"
                            ) from error
                        raise
                    time.sleep(delay)
            return None

        return wrapper

    return decorator


def retry_on_connect_failures(func=None, connect_errors=("Address already in use",)):
    if func is None:
        return functools.partial(retry_on_connect_failures, connect_errors=connect_errors)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        for attempt in range(10):
            try:
                return func(*args, **kwargs)
            except RuntimeError as error:
                if attempt == 9 or not any(text in str(error) for text in connect_errors):
                    raise
                time.sleep(random.random())
        return None

    return wrapper


def find_free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.bind(("localhost", 0))
        return sock.getsockname()[1]


def wait_for_process(p, timeout=None):
    try:
        return p.wait(timeout=timeout)
    except KeyboardInterrupt:
        p.wait(timeout=5)
        raise


def shell(command, cwd=None, env=None, stdout=None, stderr=None, timeout=None):
    """Runs a command given as a list; its exit status."""
    process = subprocess.Popen(
        command, universal_newlines=True, cwd=cwd, env=env, stdout=stdout, stderr=stderr
    )
    return wait_for_process(process, timeout=timeout)


def munge_exc(e, *, suppress_suffix=True, suppress_prefix=True, file=None, skip=0):
    """An exception's text without addresses."""
    return re.sub(r"0x[0-9a-f]+", "0x...", str(e) if suppress_prefix else repr(e))


def chunk_list(lst, nchunks):
    return [lst[i::nchunks] for i in range(nchunks)]


def gradcheck(fn, inputs, **kwargs) -> bool:
    """torch.autograd.gradcheck in its fast mode unless told otherwise."""
    kwargs.setdefault("fast_mode", os.getenv("PYTORCH_TEST_WITH_SLOW_GRADCHECK", "0") != "1")
    return _gradcheck(fn, inputs, **kwargs)


def gradgradcheck(fn, inputs, grad_outputs=None, **kwargs) -> bool:
    kwargs.setdefault("fast_mode", os.getenv("PYTORCH_TEST_WITH_SLOW_GRADCHECK", "0") != "1")
    return _gradgradcheck(fn, inputs, grad_outputs, **kwargs)


def outs_and_grads(fn, graph_inps, inps):
    """fn(*graph_inps) and the gradients of its sum by inps."""
    outs = fn(*graph_inps)
    leaves = [outs] if isinstance(outs, torch.Tensor) else list(outs)
    for out in leaves:
        if out.requires_grad:
            out.sum().backward(retain_graph=True)
    grads = [t.grad for t in inps]
    for t in inps:
        t.grad = None
    return outs, grads


def compare_equal_outs_and_grads(test, m1, m2, inps) -> None:
    first, second = outs_and_grads(m1, inps, inps), outs_and_grads(m2, inps, inps)
    test.assertEqual(first[0], second[0])
    test.assertEqual(first[1], second[1])


# ---- TestCase --------------------------------------------------------------------------------


def _tensor_like(value) -> bool:
    return isinstance(value, torch.Tensor) or (TEST_NUMPY and isinstance(value, np.ndarray))


class TestCase(unittest.TestCase):
    """unittest's, with comparisons of tensors, arrays, numbers and containers of them.

    precision and rel_tol widen the default tolerances of a whole class."""

    precision: float = 0.0
    rel_tol: float = 0.0
    maxDiff = None
    longMessage = True

    def setUp(self) -> None:
        super().setUp()
        set_rng_seed()

    def _tolerances(self, dtypes, rtol, atol) -> tuple[float, float]:
        rtol_default, atol_default = default_tolerances(*dtypes)
        rtol = max(rtol_default, self.rel_tol) if rtol is None else rtol
        return rtol, max(atol_default, self.precision) if atol is None else atol

    def _compare(self, x, y, options, path=()) -> object:
        where = "".join(f"[{key!r}]" for key in path)
        if _tensor_like(x) or _tensor_like(y):
            return self._compare_tensors(x, y, options, where)
        if isinstance(x, Mapping) and isinstance(y, Mapping):
            if set(x) != set(y):
                raise AssertionError(f"The keys do not match: {set(x)} != {set(y)}")
            return [self._compare(x[k], y[k], options, (*path, k)) for k in x]
        plain = (str, bytes)
        if isinstance(x, Sequence) and isinstance(y, Sequence) and not isinstance(x, plain):
            if len(x) != len(y):
                raise AssertionError(f"The lengths{where} do not match: {len(x)} != {len(y)}")
            return [self._compare(a, b, options, (*path, i)) for i, (a, b) in enumerate(zip(x, y))]  # noqa: B905
        numbers = (int, float, complex)
        if isinstance(x, numbers) and isinstance(y, numbers):
            return self._compare_numbers(x, y, options, where)
        if isinstance(x, Set) and isinstance(y, Set) and x != y:
            raise AssertionError(f"Sets{where} do not match: {x} != {y}")
        if not x == y:
            raise AssertionError(f"Objects{where} are not equal: {x!r} != {y!r}")
        return None

    def _compare_numbers(self, x, y, options, where) -> None:
        kinds = {float: torch.float64, complex: torch.complex128}
        dtypes = [kinds.get(type(v), torch.int64) for v in (x, y)]
        rtol, atol = self._tolerances(dtypes, options["rtol"], options["atol"])
        if x == y or (x != x and y != y and options["equal_nan"]):
            return
        if not abs(x - y) <= atol + rtol * abs(y):
            raise AssertionError(f"Scalars{where} are not close: {x} != {y} (atol {atol})")

    def _compare_tensors(self, x, y, options, where) -> None:
        tensors = [
            torch.from_numpy(v.copy()) if TEST_NUMPY and isinstance(v, np.ndarray) else v
            for v in (x, y)
        ]
        known = next(v for v in tensors if isinstance(v, torch.Tensor))
        loose = not all(_tensor_like(v) for v in (x, y)) or type(x) is not type(y)
        x, y = (
            v if isinstance(v, torch.Tensor) else torch.as_tensor(v, device=known.device)
            for v in tensors
        )
        rtol, atol = self._tolerances((x.dtype, y.dtype), options["rtol"], options["atol"])
        torch.testing.assert_close(
            x,
            y,
            rtol=rtol,
            atol=atol,
            equal_nan=options["equal_nan"],
            check_device=options["exact_device"],
            check_dtype=options["exact_dtype"] and not loose,
            check_layout=options["exact_layout"],
            check_stride=options["exact_stride"],
            msg=lambda text: f"{text}\n{where}" if where else text,
        )

    def assertEqual(
        self,
        x,
        y,
        msg=None,
        *,
        atol=None,
        rtol=None,
        equal_nan=True,
        exact_dtype=True,
        exact_device=False,
        exact_layout=False,
        exact_stride=False,
        exact_is_coalesced=False,
    ) -> None:
        """Equal, or close within the tolerances of the dtypes (or the given ones)."""
        if (rtol is None) != (atol is None):
            rtol, atol = (0.0, atol) if rtol is None else (rtol, 0.0)
        options = {
            "rtol": rtol,
            "atol": atol,
            "equal_nan": equal_nan,
            "exact_dtype": exact_dtype,
            "exact_device": exact_device,
            "exact_layout": exact_layout,
            "exact_stride": exact_stride,
        }
        try:
            self._compare(x, y, options)
        except AssertionError as error:
            text = msg(str(error)) if callable(msg) else (f"{error}\n{msg}" if msg else str(error))
            raise self.failureException(text) from None

    def assertNotEqual(self, x, y, msg=None, *, atol=None, rtol=None, **kwargs) -> None:
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, msg, atol=atol, rtol=rtol, **kwargs)

    def assertEqualIgnoreType(self, *args, **kwargs):
        return self.assertEqual(*args, exact_dtype=False, **kwargs)

    def assertEqualBroadcasting(self, x, y, *args, **kwargs):
        """Equal after y is expanded to x's shape."""
        y = torch.as_tensor(y, dtype=x.dtype, device=x.device).expand_as(x)
        return self.assertEqual(x, y, *args, exact_dtype=False, **kwargs)

    def assertEqualTypeString(self, x, y) -> None:
        self.assertEqual(x.device, y.device)
        self.assertEqual(x.dtype, y.dtype)
        self.assertEqual(x.is_sparse, y.is_sparse)

    def assertObjectIn(self, obj, iterable) -> None:
        if not any(item is obj for item in iterable):
            raise AssertionError("object not found in iterable")

    def assertLeaksNoCudaTensors(self, name=None):
        return contextlib.nullcontext()

    def assertNotWarn(self, callable, msg="") -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            callable()
        self.assertTrue(len(caught) == 0, msg)

    @contextlib.contextmanager
    def assertWarnsOnceRegex(self, category, regex="") -> Iterator[None]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        found = [w for w in caught if issubclass(w.category, category)]
        if not any(re.match(regex, str(w.message)) for w in found):
            raise AssertionError(f"no {category.__name__} that matches {regex!r}; got {found}")

    def assertExpectedInline(self, actual, expect, skip=0) -> None:
        self.assertMultiLineEqual(str(actual), expect)

    def compare_with_numpy(
        self, torch_fn, np_fn, tensor_like, device=None, dtype=None, **kwargs
    ) -> None:
        """torch_fn on the tensor against np_fn on the array of the same values."""
        if isinstance(tensor_like, torch.Tensor):
            tensor = tensor_like
            array = tensor.detach().cpu()
            array = (array.float() if array.dtype is torch.bfloat16 else array).numpy()
        else:
            tensor = torch.tensor(tensor_like, device=device, dtype=dtype)
            array = tensor.cpu().numpy()
        expected = np_fn(array)
        expected = (
            torch.from_numpy(np.asarray(expected))
            if not isinstance(expected, (list, tuple))
            else [torch.from_numpy(np.asarray(e)) for e in expected]
        )
        self.assertEqual(torch_fn(tensor), expected, exact_device=False, **kwargs)

    @staticmethod
    def runWithPytorchAPIUsageStderr(code):
        return TestCase.run_process_no_exception(code)[1].decode("utf-8")

    @staticmethod
    def run_process_no_exception(code, env=None):
        process = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env)
        return process.stdout, process.stderr


TestCaseBase = TestCase


class NoTest:
    """Stands in for a class of tests that cannot run here."""

    __test__ = False


def run_tests(argv=None) -> None:
    """Runs the tests of the main module as unittest does."""
    unittest.main(argv=sys.argv if argv is None else argv)


def parse_cmd_line_args():
    """Takes --seed and --repeat off the command line; the rest of it is unittest's own."""
    global SEED, REPEAT_COUNT
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--repeat", type=int, default=REPEAT_COUNT)
    known, rest = parser.parse_known_args()
    SEED, REPEAT_COUNT = known.seed, known.repeat
    return [sys.argv[0], *rest]


def load_tests(loader, tests, pattern):
    """unittest's hook: every test of the module."""
    suite = unittest.TestSuite()
    for group in tests:
        suite.addTests(group)
    return suite


def do_test_dtypes(self, dtypes, layout, device) -> None:
    """Tensors of zeros have the dtype, layout and kind of device that were asked for."""
    kind = torch.device(device).type
    for dtype in set(dtypes) - {torch.float16}:
        made = torch.zeros((2, 3), dtype=dtype, layout=layout, device=device)
        found = (made.dtype, made.layout, made.device.type)
        self.assertTrue(found == (dtype, layout, kind), f"asked for {dtype}, got {found}")
