"""What tests and tools of the compiler use: compiling into an empty cache, the text of what was
compiled, timing, small arithmetic."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from unittest import mock

import torch
from torch import fx
from torch._inductor import config, debug
from torch.utils import _pytree as pytree
from torch.utils._ordered_set import OrderedSet

__all__ = [
    "BoxedBool",
    "GPU_TYPES",
    "OrderedSet",
    "aggregate_origins",
    "assert_size_stride",
    "ceildiv",
    "clear_inductor_caches",
    "collect_defined_kernels",
    "do_bench_using_profiling",
    "fresh_cache",
    "fresh_inductor_cache",
    "gen_gm_and_inputs",
    "get_code",
    "get_dtype_size",
    "is_gpu",
    "override_lowering",
    "parallel_num_threads",
    "print_performance",
    "run_and_get_code",
    "run_and_get_cpp_code",
    "run_and_get_triton_code",
    "run_fw_bw_and_get_code",
    "sympy_index_symbol",
    "sympy_subs",
    "timed",
]


GPU_TYPES = ["cuda", "mps", "xpu", "mtia"]

# ---- caches ---------------------------------------------------------------------------------


def clear_inductor_caches() -> None:
    """Forgets what is kept in memory."""
    torch._dynamo.reset()


@contextlib.contextmanager
def fresh_inductor_cache(
    cache_entries: dict[str, int] | None = None,
    dir: str | None = None,
    delete: bool = True,
) -> Iterator[None]:
    """An empty cache folder inside of the context; `cache_entries` receives the files left in it
    and their sizes."""
    clear_inductor_caches()
    folder = tempfile.mkdtemp(dir=dir)
    try:
        with mock.patch.dict(os.environ, {"TORCHINDUCTOR_CACHE_DIR": folder}):
            yield
            if cache_entries is not None:
                for base, _, names in os.walk(folder):
                    for name in names:
                        cache_entries[name] = os.path.getsize(os.path.join(base, name))
    finally:
        if delete:
            shutil.rmtree(folder, ignore_errors=True)
        clear_inductor_caches()


fresh_cache = fresh_inductor_cache


# ---- texts ----------------------------------------------------------------------------------


def run_and_get_code(fn: Callable, *args: object, **kwargs: object) -> tuple[object, list[str]]:
    """What a compiled function returns, and the programs that were compiled for it."""
    found: list[str] = []
    torch._dynamo.reset()
    with debug.listen(found.append), config.patch(force_disable_caches=True):
        result = fn(*args, **kwargs)
    return result, list(dict.fromkeys(found))


def run_fw_bw_and_get_code(fn: Callable) -> tuple[object, list[str]]:
    """run_and_get_code of a function and the derivative of the sum of its result."""

    def run() -> object:
        result = fn()
        result.sum().backward()
        return result

    return run_and_get_code(run)


def get_code(fn: Callable, *args: object, **kwargs: object) -> list[str]:
    """The programs compiled for a function."""
    return run_and_get_code(fn, *args, **kwargs)[1]


def run_and_get_cpp_code(fn: Callable, *args: object, **kwargs: object) -> tuple[object, str]:
    """What a compiled function returns, and the text of what was compiled for it."""
    result, codes = run_and_get_code(fn, *args, **kwargs)
    return result, "\n".join(codes)


def run_and_get_triton_code(fn: Callable, *args: object, **kwargs: object) -> str:
    """The program compiled for a function, which must be one."""
    codes = get_code(fn, *args, **kwargs)
    if not codes or len(codes) > 2:
        raise AssertionError(f"expected one or two code outputs got {len(codes)}")
    return codes[0]


get_triton_code = run_and_get_triton_code


@contextlib.contextmanager
def collect_defined_kernels(kernel_list: list[str]) -> Iterator[None]:
    """Appends the texts of the kernels of all graphs compiled inside of the context."""

    def listener(code: str) -> None:
        for part in code.split("\n\n\n"):
            if part.startswith("def cpp_"):
                kernel_list.append(part)

    with debug.listen(listener):
        yield


# ---- graphs ---------------------------------------------------------------------------------


def gen_gm_and_inputs(
    target: Callable, args: Sequence[object], kwargs: dict[str, object]
) -> tuple[fx.GraphModule, list[torch.Tensor]]:
    """A graph of one call whose inputs are the tensors among the arguments."""
    graph = fx.Graph()
    inputs: list[torch.Tensor] = []

    def lift(value: object) -> object:
        if not isinstance(value, torch.Tensor):
            return value
        inputs.append(value)
        return graph.placeholder(f"arg{len(inputs) - 1}")

    given = pytree.tree_map(lift, (tuple(args), dict(kwargs)))
    node = graph.call_function(target, *given)
    returns = target._schema.returns
    if len(returns) == 1 and str(returns[0].type) == "Tensor":
        node = (node,)
    graph.output(node)
    return fx.GraphModule({}, graph), inputs


def aggregate_origins(node_schedule: Sequence[object]) -> set[fx.Node]:
    """The nodes of the graph that steps were made of."""
    return {n for n in node_schedule if isinstance(n, fx.Node)}


@contextlib.contextmanager
def override_lowering(aten_op: object, override_fn: Callable) -> Iterator[None]:
    """override_fn(original lowering, *args) lowers an operator inside of the context."""
    from torch._inductor import lowering

    original = lowering.lowerings[aten_op]
    before = dict.get(lowering.lowerings, aten_op)
    lowering.lowerings[aten_op] = functools.partial(override_fn, original)
    try:
        yield
    finally:
        if before is None:
            del lowering.lowerings[aten_op]
        else:
            lowering.lowerings[aten_op] = before


def add_scheduler_init_hook(
    pre_fn: Callable, post_fn: Callable | None = None
) -> contextlib.AbstractContextManager:
    """The scheduler is C++: there is nothing to hook into."""
    raise NotImplementedError("add_scheduler_init_hook: steps are made in C++ in this version")


def pass_execution_and_save(
    func: Callable, gm: fx.GraphModule, inp: Sequence[object], msg: str
) -> None:
    """Runs a pass and writes the graph before and after it into a temporary file."""
    with tempfile.NamedTemporaryFile(mode="w", encoding="utf-8", delete=False) as file:
        before = str(gm.graph)
        file.write(f"Before:\n{before}\n")
        func(gm.graph)
        file.write(f"After:\n{gm.graph}\nChanged: {before != str(gm.graph)}\n{msg}\n")


# ---- values ---------------------------------------------------------------------------------


class BoxedBool:
    """A flag that is shared."""

    def __init__(self, value: bool) -> None:
        self.value = value

    def __bool__(self) -> bool:
        return self.value

    @staticmethod
    def disable(obj: object) -> object:
        """Off."""
        if isinstance(obj, BoxedBool):
            obj.value = False
            return obj
        return False


def ceildiv(number: int, denom: int) -> int:
    """number / denom towards infinity."""
    return -(-number // denom)


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not smaller."""
    return 1 << max(n - 1, 0).bit_length()


def get_dtype_size(dtype: torch.dtype) -> int:
    """Bytes of an element."""
    return dtype.itemsize


def is_gpu(device: str | None) -> bool:
    """Whether a kind of device is a GPU."""
    return device in GPU_TYPES


def get_gpu_type() -> str:
    """The kind of GPU there is; "cuda" where there is none."""
    return next((k for k in GPU_TYPES if getattr(torch, k, None) and _has(k)), "cuda")


def _has(kind: str) -> bool:
    is_available = getattr(getattr(torch, kind), "is_available", None)
    return is_available is not None and is_available()


def get_gpu_shared_memory() -> int:
    """Bytes of shared memory of a block, 0 without a GPU."""
    if not torch.cuda.is_available():
        return 0
    return int(getattr(torch.cuda.get_device_properties(0), "shared_memory_per_block_optin", 0))


def has_torchvision_roi_align() -> bool:
    """Whether torchvision brings its operator for regions."""
    return hasattr(torch.ops.torchvision, "roi_align")


def is_big_gpu(index: int = 0) -> bool:
    """Whether a GPU is large enough for tuned matrix products."""
    if not torch.cuda.is_available():
        return False
    return torch.cuda.get_device_properties(index).multi_processor_count >= 68


def parallel_num_threads() -> int:
    """Threads of kernels for the CPU."""
    wanted = config.cpp.threads
    return torch.get_num_threads() if wanted < 1 else wanted


def sympy_index_symbol(name: str) -> object:
    """The symbol of an index: a whole number that is not negative."""
    import sympy

    if name.startswith("s"):
        raise AssertionError(f"the name {name} is one of sizes")
    return sympy.Symbol(name, integer=True, nonnegative=True)


def sympy_subs(expr: object, replacements: dict[object, object]) -> object:
    """The expression with parts replaced; a name stands for a symbol with the assumptions of what
    it replaces."""
    import sympy

    def target(old: object, new: object) -> object:
        if not isinstance(old, sympy.Expr):
            raise AssertionError(f"expected an expression to replace, got {type(old)}")
        if not isinstance(new, str):
            return new
        return sympy.Symbol(new, integer=old.is_integer, nonnegative=old.is_nonnegative)

    table = {old: target(old, new) for old, new in replacements.items()}
    return sympy.sympify(expr).xreplace(table)


def assert_size_stride(item: torch.Tensor, size: Sequence[int], stride: Sequence[int]) -> None:
    """Raises AssertionError unless a tensor has this geometry."""
    if tuple(item.shape) != tuple(size) or tuple(item.stride()) != tuple(stride):
        raise AssertionError(
            f"expected size {tuple(size)}, stride {tuple(stride)}, got size {tuple(item.shape)}, "
            f"stride {tuple(item.stride())}"
        )


# ---- timing ---------------------------------------------------------------------------------


def timed(
    model: Callable, example_inputs: Sequence[object], times: int = 1, device: str = "cuda"
) -> float:
    """Seconds of some calls."""
    torch.manual_seed(1337)
    begun = time.perf_counter()
    for _ in range(times):
        model(*example_inputs)
    if device == "cuda" and torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def print_performance(
    model: Callable,
    example_inputs: Sequence[object] = (),
    times: int = 10,
    repeat: int = 10,
    baseline: float = 1.0,
    device: str = "cpu",
) -> float:
    """The median of the seconds per call, printed and returned."""
    rounds = sorted(timed(model, example_inputs, times, device) for _ in range(repeat))
    took = rounds[len(rounds) // 2] / times
    print(f"{took / baseline:.6f}")
    return took


def do_bench_using_profiling(fn: Callable, warmup: int = 25, rep: int = 100) -> float:
    """Milliseconds per call."""
    for _ in range(max(warmup // 25, 1)):
        fn()
    return timed(fn, (), times=max(rep // 10, 1)) / max(rep // 10, 1) * 1e3
