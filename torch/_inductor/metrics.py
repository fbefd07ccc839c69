"""What the compiler made since the last reset: tests of fusion count kernels and bytes."""

from __future__ import annotations

import dataclasses
import inspect
import re

__all__ = ["CachedMetricsDeltas", "CachedMetricsHelper", "note_plan", "reset"]

generated_kernel_count = 0
generated_cpp_vec_kernel_count = 0
num_bytes_accessed = 0
ir_nodes_pre_fusion = 0
num_calls = 0
cpp_to_dtype_count = 0
num_comprehensive_padding = 0
num_matches_for_scatter_upon_const_tensor = 0
num_loop_reordering = 0
num_auto_chunking = 0
parallel_reduction_count = 0
codegen_mix_order_reduction = 0
# (step, elements) and (step, microseconds), where something estimates them.
nodes_num_elem: list[tuple[object, int]] = []
node_runtimes: list[tuple[object, float]] = []
cpp_outer_loop_fused_inner_counts: list[object] = []
# Graphs that are run as they are, with the reason.
not_lowered: list[str] = []

_NUMBERS = [name for name, value in list(globals().items()) if type(value) is int]
_LISTS = [nodes_num_elem, node_runtimes, cpp_outer_loop_fused_inner_counts, not_lowered]


def reset() -> None:
    """Starts counting anew."""
    globals().update(dict.fromkeys(_NUMBERS, 0))
    for values in _LISTS:
        values.clear()


def note_plan(kernels: int, calls: int, nbytes: int) -> None:
    """Counts what a plan will run."""
    global generated_kernel_count, generated_cpp_vec_kernel_count, num_calls, num_bytes_accessed
    generated_kernel_count += kernels
    generated_cpp_vec_kernel_count += kernels
    num_calls += calls
    num_bytes_accessed += nbytes


@dataclasses.dataclass
class CachedMetricsDeltas:
    """What compiling one graph added."""

    generated_kernel_count: int
    generated_cpp_vec_kernel_count: int
    ir_nodes_pre_fusion: int
    cpp_to_dtype_count: int
    num_bytes_accessed: int
    num_matches_for_scatter_upon_const_tensor: int


class CachedMetricsHelper:
    """Counts from its making on."""

    def __init__(self) -> None:
        self.before = self._now()

    @staticmethod
    def _now() -> dict[str, int]:
        return {f.name: globals()[f.name] for f in dataclasses.fields(CachedMetricsDeltas)}

    def get_deltas(self) -> CachedMetricsDeltas:
        """What was added since."""
        now = self._now()
        return CachedMetricsDeltas(**{name: now[name] - self.before[name] for name in now})

    @staticmethod
    def apply_deltas(delta: CachedMetricsDeltas) -> None:
        """Adds what a stored graph had added when it was compiled."""
        for name, value in dataclasses.asdict(delta).items():
            globals()[name] += value


# ---- texts of kernels -----------------------------------------------------------------------


def _parse_proper_kernel_fn_code(kernel_fn_code: str) -> str:
    """The function in the source of a kernel, without decorators."""
    return kernel_fn_code[kernel_fn_code.index("def ") :]


def _count_args(proper_kernel_fn_code: str) -> int:
    """The number of parameters of a kernel."""
    header = proper_kernel_fn_code.partition("):")[0] + "): pass"
    return len(inspect.signature(_defined(re.sub(r":\s*tl\.\w+", "", header))).parameters)


def _defined(source: str) -> object:
    space: dict[str, object] = {}
    exec(compile(source, "<kernel>", "exec"), space)
    return next(v for k, v in space.items() if not k.startswith("__"))


def _count_pattern(proper_kernel_fn_code: str, pattern: str) -> int:
    """How often a text occurs in a kernel."""
    return proper_kernel_fn_code.count(pattern)


def _parse_reduction_hint(kernel_category: str, kernel_module_code: str) -> str | None:
    """The hint that the source of a reduction gives."""
    if kernel_category not in ("reduction", "persistent_reduction"):
        return None
    found = re.search(r"reduction_hint=ReductionHint\.(\w+),", kernel_module_code)
    return found.group(1) if found else None


def _parse_kernel_args_num_gb(kernel_fn_code: str, kernel_category: str) -> float | None:
    """The gigabytes that the source of a kernel says it moves."""
    found = re.search(r".kernel_num_gb.:\s*([0-9.]+)", kernel_fn_code)
    return float(found.group(1)) if found else None
