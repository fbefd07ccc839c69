"""What programs ask the compiler about itself, and what its parts share: counters, times,
comparisons of results, copies of inputs."""

from __future__ import annotations

import atexit
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import math
import sys
import time
import types
import typing
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

import torch

if typing.TYPE_CHECKING:
    import traceback

# What the compiler counted, by kind and then by name: counters["graph_break"]["reason"].
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
# Why compiled forms did not fit, by the code object.
guard_failures: defaultdict[types.CodeType, list] = defaultdict(list)
graph_break_reasons: list[GraphCompileReason] = []
# Seconds of each phase, by its name.
compilation_time_metrics: dict[str, list[float]] = {}
# Names of the phases that are under way, the innermost last.
current_stages: list[str] = []
frame_phase_timing: defaultdict[str, defaultdict[str, float]] = defaultdict(
    lambda: defaultdict(float)
)
nnmodule_doc_url_msg = ""


class GraphCompileReason(typing.NamedTuple):
    """Why a graph ended."""

    reason: str
    user_stack: list[traceback.FrameSummary]
    graph_break: bool = True


def __getattr__(name: str) -> object:
    if name == "LazyString":  # a text made when it is printed; loads logging
        from torch._logging import LazyString

        return LazyString
    if name == "detect_fake_mode":  # backends of others import it from here
        from torch._guards import detect_fake_mode

        return detect_fake_mode
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@functools.cache
def _warn_of(message: str, stacklevel: int) -> None:
    warnings.warn(message, stacklevel=stacklevel)


def warn_once(msg: str, stacklevel: int = 1) -> None:
    """A warning that a process shows once, with the line of the caller."""
    _warn_of(msg, stacklevel + 2)


def is_compile_supported(device_type: str) -> bool:
    """Whether kernels for a kind of device can be generated: not yet."""
    return False


def namedtuple_fields(cls: type) -> tuple[str, ...]:
    """Names of the values of a named tuple or of a result with named values."""
    found = getattr(cls, "_fields", None)
    if found is not None:
        return tuple(found)
    names = [n for n, v in cls.__dict__.items() if isinstance(v, types.MemberDescriptorType)]
    return tuple(names)


# ---- values


def istensor(obj: object) -> bool:
    """Whether it is a tensor or a parameter, and of no class of the program's."""
    return type(obj) in (torch.Tensor, torch.nn.Parameter)


def istype(obj: object, allowed_types: type | tuple[type, ...]) -> bool:
    """Whether the class of an object is one of these, subclasses not counted."""
    if isinstance(allowed_types, (tuple, list, set)):
        return type(obj) in allowed_types
    return type(obj) is allowed_types


def hashable(x: object) -> bool:
    """Whether an object has a hash."""
    try:
        hash(x)
    except (TypeError, ValueError):
        return False
    return True


_CONSTANTS = (int, float, complex, bool, str, bytes, type(None), types.EllipsisType, types.CodeType)


def is_safe_constant(v: object) -> bool:
    """Whether a value may stand in code as it is."""
    if isinstance(v, (tuple, frozenset)):
        return all(is_safe_constant(item) for item in v)
    return isinstance(v, (*_CONSTANTS, type, torch.Size, torch.dtype, torch.device))


def is_numpy_available() -> bool:
    """Whether NumPy is installed."""
    import importlib.util

    return importlib.util.find_spec("numpy") is not None


def is_namedtuple(obj: object) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_cls(type(obj))


def is_namedtuple_cls(cls: type) -> bool:
    """Whether a class is one of named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def unsupported(*args: object) -> object:
    """A function that the tracer breaks at; returns its last argument."""
    torch._dynamo.graph_break()
    return args[-1]


def ifdynstaticdefault(count1: object, count2: object) -> object:
    """What a test expects: the first with sizes fixed by default, the second with symbols."""
    return count1 if torch._dynamo.config.assume_static_by_default else count2


def identity(x: object) -> object:
    """x."""
    return x


# ---- copies


def clone_tensor(x: torch.Tensor) -> torch.Tensor:
    """A copy with its own gradient."""
    out = x.clone().requires_grad_(x.requires_grad)
    if x.is_leaf and x.grad is not None:
        out.grad = x.grad.clone()
    return out


def clone_input(x: torch.Tensor, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A leaf with the same numbers, geometry and gradient."""
    with torch.no_grad():
        if x.device.type == "meta" or x.is_sparse or x.layout != torch.strided:
            out = x.clone() if dtype is None else x.to(dtype, copy=True)
        else:
            span = sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True)) + 1
            memory = torch.empty(
                max(span, 0) if x.numel() else 0, dtype=dtype or x.dtype, device=x.device
            )
            out = torch.as_strided(memory, x.size(), x.stride())
            overlaps = any(s == 0 and n > 1 for n, s in zip(x.shape, x.stride(), strict=True))
            out = x.to(out.dtype, copy=True) if overlaps else out.copy_(x)
    if x.is_leaf:
        out.requires_grad_(x.requires_grad and (out.is_floating_point() or out.is_complex()))
        if x.grad is not None:
            out.grad = clone_input(x.grad, dtype=dtype)
    for name in (
        "_dynamo_dynamic_indices",
        "_dynamo_weak_dynamic_indices",
        "_dynamo_static_indices",
    ):
        if hasattr(x, name):
            setattr(out, name, set(getattr(x, name)))
    return out


def clone_inputs(example_inputs: dict | Sequence[object]) -> dict | list[object]:
    """Copies of the tensors among the inputs."""
    if isinstance(example_inputs, dict):
        made = copy.copy(example_inputs)
        for key, value in example_inputs.items():
            made[key] = clone_input(value) if isinstance(value, torch.Tensor) else value
        return made
    return [clone_input(v) if isinstance(v, torch.Tensor) else v for v in example_inputs]


def cast_to(
    dtype: torch.dtype, model: torch.nn.Module, inputs: object
) -> tuple[torch.nn.Module, object]:
    """A model and inputs whose floating point tensors have another dtype."""
    from torch.utils._pytree import tree_map

    def cast(x: object) -> object:
        if isinstance(x, torch.Tensor) and x.is_floating_point():
            return x.to(dtype)
        return x

    return model.to(dtype), tree_map(cast, inputs)


def cast_to_fp64(model: torch.nn.Module, inputs: object) -> tuple[torch.nn.Module, object]:
    """A model and inputs in double precision."""
    return cast_to(torch.float64, model, inputs)


def cast_to_fp32(model: torch.nn.Module, inputs: object) -> tuple[torch.nn.Module, object]:
    """A model and inputs in single precision."""
    return cast_to(torch.float32, model, inputs)


def deepcopy_to_fake_tensor(obj: object, fake_mode: object) -> object:
    """A copy whose tensors are fakes."""
    with torch._subclasses.fake_tensor.FakeCopyMode(fake_mode):
        return copy.deepcopy(obj)


@contextlib.contextmanager
def preserve_rng_state() -> Iterator[None]:
    """Generators are afterwards as they were before."""
    with torch.utils._python_dispatch._disable_current_modes():
        cpu = torch.get_rng_state()
        cuda = torch.cuda.get_rng_state() if torch.cuda.is_initialized() else None
    try:
        yield
    finally:
        with torch.utils._python_dispatch._disable_current_modes():
            torch.set_rng_state(cpu)
            if cuda is not None:
                torch.cuda.set_rng_state(cuda)


def set_locals_to_steal(maybe_gm: object, locals_to_steal: list[str]) -> None:
    """Names of lists of inputs that the compiled function may empty."""
    if isinstance(maybe_gm, torch.nn.Module):
        maybe_gm.meta = {**getattr(maybe_gm, "meta", {}), "locals_to_steal": locals_to_steal}


def get_locals_to_steal(maybe_gm: object) -> list[str]:
    """What set_locals_to_steal set."""
    return getattr(maybe_gm, "meta", {}).get("locals_to_steal", [])


# ---- comparison of results


def rmse(ref: torch.Tensor, res: torch.Tensor) -> torch.Tensor:
    """The root of the mean squared difference."""
    return torch.sqrt(torch.mean(torch.square(ref - res)))


def same(
    ref: object,
    res: object,
    fp64_ref: object = None,
    cos_similarity: bool = False,
    tol: float = 1e-4,
    equal_nan: bool = False,
    exact_dtype: bool = True,
    relax_numpy_equality: bool = False,
    ignore_non_fp: bool = False,
    log_error: Callable[..., None] | None = None,
    use_larger_multiplier_for_smaller_tensor: bool = False,
    force_max_multiplier: bool = False,
) -> bool:
    """Whether two results agree: containers item by item, tensors within `tol`, or, where a result
    in double precision is given, nearly as close to it as the reference is."""
    options = {
        "cos_similarity": cos_similarity, "tol": tol, "equal_nan": equal_nan,
        "exact_dtype": exact_dtype, "relax_numpy_equality": relax_numpy_equality,
        "ignore_non_fp": ignore_non_fp, "log_error": log_error or _silent,
        "factor": functools.partial(
            _factor, use_larger_multiplier_for_smaller_tensor, force_max_multiplier
        ),
    }  # fmt: skip
    return _same(ref, res, fp64_ref, options)


def _factor(larger: bool, largest: bool, count: int) -> float:
    """How much further than the reference a tensor of `count` elements may be from the exact
    result: single numbers scatter more than means over many."""
    if largest or (larger and count <= 10):
        return 10.0
    return 5.0 if larger and count <= 500 else 2.0


def _silent(*args: object) -> None:
    return None


def _same(ref: object, res: object, wide: object, options: dict[str, object]) -> bool:
    if isinstance(ref, (list, tuple, collections.deque, torch.Size, torch.nn.ParameterList)):
        if not isinstance(
            res, (list, tuple, collections.deque, torch.Size, torch.nn.ParameterList)
        ):
            return False
        wides = wide if wide is not None else [None] * len(ref)
        return len(ref) == len(res) and all(
            _same(a, b, c, options) for a, b, c in zip(ref, res, wides, strict=False)
        )
    if isinstance(ref, dict):
        if not isinstance(res, dict) or set(ref) != set(res):
            return False
        return all(_same(ref[k], res[k], wide and wide.get(k), options) for k in ref)
    if isinstance(ref, set):
        return isinstance(res, set) and ref == res
    if isinstance(ref, (torch.Tensor, float)) and (
        isinstance(ref, torch.Tensor) or isinstance(res, torch.Tensor)
    ):
        return _same_tensor(ref, res, wide, options)
    if isinstance(ref, (str, int, type(None), bool, torch.device, torch.dtype, bytes)):
        return options["ignore_non_fp"] or ref == res
    if isinstance(ref, float):
        if math.isnan(ref):
            return isinstance(res, float) and math.isnan(res)
        return isinstance(res, float) and math.isclose(
            ref, res, rel_tol=options["tol"], abs_tol=1e-12
        )
    if type(ref).__module__ == "numpy":
        return _same_numpy(ref, res, options)
    if hasattr(ref, "__dict__") and ref.__dict__:
        if type(ref) is not type(res):
            return False
        return _same(vars(ref), vars(res), vars(wide) if wide is not None else None, options)
    if hasattr(ref, "__eq__"):
        return bool(ref == res)
    raise RuntimeError(f"unsupported type: {type(ref).__name__}")


def _same_numpy(ref: object, res: object, options: dict[str, object]) -> bool:
    import numpy

    if options["relax_numpy_equality"] and not isinstance(res, numpy.ndarray):
        ref = ref.item() if not isinstance(ref, numpy.ndarray) or ref.ndim == 0 else ref
    return (type(ref) is type(res) or options["relax_numpy_equality"]) and bool(
        numpy.all(numpy.equal(ref, res) | ((ref != ref) & (res != res)))
    )


def _same_tensor(
    ref: torch.Tensor | float,
    res: torch.Tensor | float,
    wide: torch.Tensor | None,
    options: dict[str, object],
) -> bool:
    say = options["log_error"]
    if not isinstance(res, torch.Tensor):
        return (
            isinstance(res, (int, float))
            and ref.numel() == 1
            and _same(ref.item(), res, None, options)
        )
    if not isinstance(ref, torch.Tensor):
        ref = torch.tensor(ref, dtype=res.dtype)
    if ref.shape != res.shape or ref.is_sparse != res.is_sparse:
        say("Shapes differ: %s and %s", tuple(ref.shape), tuple(res.shape))
        return False
    if options["exact_dtype"] and ref.dtype != res.dtype:
        say("dtype mismatch %s, %s", ref.dtype, res.dtype)
        return False
    if ref.is_sparse:
        ref, res = ref.to_dense(), res.to_dense()
    if ref.dtype == torch.bool or not (ref.is_floating_point() or ref.is_complex()):
        return bool(options["ignore_non_fp"]) or bool(torch.equal(ref, res.to(ref.dtype)))
    ref, res = ref.detach().to(res.dtype), res.detach()
    if options["cos_similarity"]:
        a, b = ref.flatten().to(torch.float32), res.flatten().to(torch.float32)
        if torch.allclose(a, b, atol=options["tol"], rtol=options["tol"], equal_nan=True):
            return True
        return bool(torch.nn.functional.cosine_similarity(a, b, dim=0, eps=1e-6) >= 0.99)
    tolerance = options["tol"]
    if torch.allclose(ref, res, atol=tolerance, rtol=tolerance, equal_nan=options["equal_nan"]):
        return True
    if wide is None:
        say("Accuracy failed: allclose not within tol=%s", tolerance)
        return False
    exact = wide.detach().to(torch.float64)
    factor = options["factor"](ref.numel())
    allowed = factor * rmse(exact, ref.to(torch.float64)).item() + tolerance / 10
    found = rmse(exact, res.to(torch.float64)).item()
    if not found <= allowed:
        say("RMSE (res-fp64): %.5f, (ref-fp64) allows %.5f", found, allowed)
    return found <= allowed


# ---- times and metrics


def _shown_to_profiler(key: str) -> contextlib.AbstractContextManager:
    if not torch._C._profiler_enabled():
        return contextlib.nullcontext()
    return torch.autograd.profiler.record_function(f"{key} (dynamo_timed)")


class dynamo_timed(contextlib.ContextDecorator):
    """Notes how long a phase takes."""

    def __init__(
        self,
        key: str,
        phase_name: str | None = None,
        log_pt2_compile_event: bool = False,
        **metadata: object,
    ) -> None:
        self.key, self.phase_name = key, phase_name

    def _recreate_cm(self) -> dynamo_timed:
        return dynamo_timed(self.key, self.phase_name)

    def __enter__(self) -> None:
        self.begun = time.perf_counter()
        current_stages.append(self.phase_name or self.key)
        _trace_event(self.key, "B")
        self.shown = _shown_to_profiler(self.key)
        self.shown.__enter__()

    def __exit__(self, *error: object) -> None:
        self.shown.__exit__(*error)
        current_stages.pop()
        _trace_event(self.key, "E")
        spent = time.perf_counter() - self.begun
        compilation_time_metrics.setdefault(self.key, []).append(spent)
        if self.phase_name is not None:
            frame_phase_timing["total"][self.phase_name] += spent


def _trace_event(name: str, phase: str) -> None:
    """The begin or end of a phase in TORCH_TRACE, for viewers of timelines."""
    if "torch._logging" not in sys.modules:
        return  # the import of the tracer alone loads no logging

    from torch._logging import trace_structured

    trace_structured(
        "chromium_event",
        payload_fn=lambda: {
            "name": name,
            "ts": time.time_ns() / 1e3,
            "args": {},
            "ph": phase,
            "cat": "dynamo_timed",
            "tid": 0,
            "pid": 0,
        },
        expect_trace_id=False,
    )


def compile_times(repr: typing.Literal["str", "csv"] = "str", aggregate: bool = False) -> object:
    """Seconds per phase, as a text or as (names, texts)."""
    rows = [
        (name, ", ".join(f"{t:.4f}" for t in ([sum(spent)] if aggregate else spent)))
        for name, spent in compilation_time_metrics.items()
    ]
    if repr == "csv":
        return [name for name, _ in rows], [text for _, text in rows]
    if repr != "str":
        raise ValueError(f"compile_times: repr must be 'str' or 'csv', got {repr!r}")
    width = max((len(name) for name, _ in rows), default=8)
    lines = [f"{name:{width}}  {text}" for name, text in rows]
    return "\n".join(["TorchDynamo compilation metrics:", "Function  Runtimes (s)", *lines])


def reset_frame_count() -> None:
    """Forgets the times of compilations. Counters stay: their readers clear them."""
    compilation_time_metrics.clear()
    frame_phase_timing.clear()


@dataclasses.dataclass
class CompilationMetrics:
    """What is known about one compilation."""

    compile_id: str | None = None
    frame_key: str | None = None
    co_name: str | None = None
    co_filename: str | None = None
    co_firstlineno: int | None = None
    cache_size: int | None = None
    accumulated_cache_size: int | None = None
    guard_count: int | None = None
    shape_env_guard_count: int | None = None
    graph_op_count: int | None = None
    graph_node_count: int | None = None
    graph_input_count: int | None = None
    start_time: float | None = None
    entire_frame_compile_time_s: float | None = None
    backend_compile_time_s: float | None = None
    fail_type: str | None = None
    fail_reason: str | None = None
    fail_user_frame_filename: str | None = None
    fail_user_frame_lineno: int | None = None
    non_compliant_ops: set[str] = dataclasses.field(default_factory=set)
    compliant_custom_ops: set[str] = dataclasses.field(default_factory=set)
    restart_reasons: set[str] = dataclasses.field(default_factory=set)
    dynamo_time_before_restart_s: float | None = None
    has_guarded_code: bool | None = None
    config_suppress_errors: bool | None = None
    config_inline_inbuilt_nn_modules: bool | None = None
    specialize_float: bool | None = None
    is_forward: bool | None = None
    recompile_user_contexts: list[str] | None = None


_metrics: collections.deque[CompilationMetrics] = collections.deque(maxlen=64)


def add_compilation_metrics(metrics: CompilationMetrics) -> None:
    """Notes a compilation; the oldest are forgotten."""
    _metrics.append(metrics)


def get_compilation_metrics() -> list[CompilationMetrics]:
    """The compilations noted last."""
    return list(_metrics)


def clear_compilation_metrics() -> None:
    """Forgets the compilations noted."""
    _metrics.clear()


def set_compilation_metrics_limit(new_size: int) -> None:
    """How many compilations are kept."""
    global _metrics
    _metrics = collections.deque(_metrics, maxlen=new_size)


@atexit.register
def _print_times_at_exit() -> None:
    import logging

    log = logging.getLogger(__name__)
    if compilation_time_metrics and log.isEnabledFor(logging.INFO):
        log.info("%s", compile_times(repr="str", aggregate=True))


class ReInplaceTrigger(enum.Enum):
    """What asked to write in place."""

    AUTO_FUNC_V1 = 1
    AUTO_FUNC_V2 = 2
    TRITON_OPS = 3


class ReinplaceCounters:
    """How often, and for how many bytes, a copy could not be avoided."""

    _values: Counter[str] = Counter()

    @classmethod
    def add_missed_bytes(cls, trigger: ReInplaceTrigger, bytes: int) -> None:
        """Notes bytes that were copied."""
        cls._values[f"missed_bytes_{trigger.name}"] += bytes

    @classmethod
    def add_missed_opportunities(cls, trigger: ReInplaceTrigger, count: int) -> None:
        """Notes tensors that were copied."""
        cls._values[f"missed_tensors_{trigger.name}"] += count

    @classmethod
    def _total(cls, prefix: str) -> int:
        return sum(cls._values[f"{prefix}_{trigger.name}"] for trigger in ReInplaceTrigger)

    @classmethod
    def get_total_missed(cls) -> int:
        """Tensors that were copied."""
        return cls._total("missed_tensors")

    @classmethod
    def get_total_missed_bytes(cls) -> int:
        """Bytes that were copied."""
        return cls._total("missed_bytes")

    @classmethod
    def clear(cls) -> None:
        """Starts counting anew."""
        cls._values.clear()


class CompileProfiler:
    """A backend that runs graphs as they are and reports breaks and recompilations."""

    def __init__(self) -> None:
        self.frame_count = 0
        self.op_count = 0

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable:
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)
        return gm.forward

    def __enter__(self) -> CompileProfiler:
        self._breaks = Counter(counters["graph_break"])
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def get_metrics(self) -> dict[str, object]:
        """Why compiled forms did not fit, by the code object."""
        return {"guard_failures": guard_failures}

    def report(self) -> str:
        """Graph breaks and recompilations as a text."""
        breaks = counters["graph_break"]
        lines = ["Torchdynamo Profiler Report", "===========================", "", "Graph Breaks"]
        lines += [f"  {count}x {reason}" for reason, count in breaks.items()] or [
            "  No graph breaks detected."
        ]
        lines += ["", "Recompilation"]
        lines += [
            f"  {code.co_name} {code.co_filename}:{code.co_firstlineno}: {'; '.join(map(str, why))}"
            for code, why in guard_failures.items()
        ] or ["  No recompilation detected."]
        return "\n".join(lines) + "\n"


@contextlib.contextmanager
def disable_cache_limit() -> Iterator[None]:
    """A function may be compiled as often as it likes."""
    import sys

    with torch._dynamo.config.patch(
        recompile_limit=sys.maxsize, accumulated_recompile_limit=sys.maxsize
    ):
        yield


def format_bytecode(
    prefix: str, name: str, filename: str, line_no: int, code: types.CodeType
) -> str:
    """Instructions of a code object under a headline."""
    import dis

    return f"{prefix} {name} {filename} line {line_no} \n{dis.Bytecode(code).dis()}\n"


def get_instruction_source_311(code: types.CodeType, inst: object) -> str:
    """The line of an instruction with its place marked below."""
    import linecache

    places = inst.positions
    if places is None:
        return ""
    line, end_line, column, end_column = places
    text = linecache.getline(code.co_filename, line).rstrip()
    if not text or column is None or end_column is None:
        return text + "\n" if text else ""
    last = end_column if end_line == line else len(text.encode())
    raw = text.encode()
    before = len(raw[:column].decode(errors="replace"))
    segment = raw[column:last].decode(errors="replace")
    return f"{text}\n{' ' * before}{_markers(segment)}\n"


def _markers(segment: str) -> str:
    """Marks below a piece of a line, as tracebacks have them: the operator stands out."""
    import ast

    marks = ["^"] * max(len(segment), 1)
    try:
        body = ast.parse(f"({segment})", mode="eval").body
    except SyntaxError:
        return "".join(marks)
    if isinstance(body, ast.BinOp) and segment.isascii():
        left, right = body.left.end_col_offset - 1, body.right.col_offset - 1
        between = segment[left:right]
        sign = between.strip("() ")
        place = left + between.find(sign) if sign else left
        marks = ["~"] * len(segment)
        marks[place : place + len(sign)] = "^" * len(sign)
    return "".join(marks)
