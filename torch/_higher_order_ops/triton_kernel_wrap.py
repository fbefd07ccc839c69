"""Launches of a program's Triton kernels as operators of graphs.

triton_kernel_wrapper_mutation(kernel_idx=, constant_args_idx=, grid=, kwargs=) launches a kernel on
its tensors; triton_kernel_wrapper_functional(..., tensors_to_clone=) launches it on copies of the
named ones and returns those. Kernels, and arguments that no graph holds, lie in a table and are
named by their number there. What a kernel writes is not looked into: every tensor it is given
counts as written."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._higher_order_ops import utils
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode

__all__ = [
    "TraceableTritonKernelWrapper",
    "kernel_side_table",
    "triton_kernel_wrapper_functional",
    "triton_kernel_wrapper_mutation",
]


class KernelSideTable:
    """Kernels and constant arguments by number."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kernels: list[object] = []
        self._numbers: dict[object, int] = {}
        self._constants: list[dict[str, Any]] = []
        self._constant_numbers: dict[object, int] = {}

    def add_kernel(self, kernel: object) -> int:
        """The number of a kernel; the same for the same one."""
        with self._lock:
            if kernel not in self._numbers:
                self._numbers[kernel] = len(self._kernels)
                self._kernels.append(kernel)
            return self._numbers[kernel]

    def get_kernel(self, idx: int) -> Any:
        """The kernel of a number."""
        return self._kernels[idx]

    def add_constant_args(self, args: dict[str, Any]) -> int:
        """A number for arguments by name; the same for the same ones, so that a program that
        launches for ever needs no more memory."""
        key = tuple((name, type(value), value) for name, value in args.items())
        with self._lock:
            try:
                known = self._constant_numbers.setdefault(key, len(self._constants))
            except TypeError:  # values that cannot be looked up
                known = len(self._constants)
            if known == len(self._constants):
                self._constants.append(dict(args))
            return known

    def get_constant_args(self, idx: int) -> dict[str, Any]:
        """The arguments of a number."""
        return self._constants[idx]

    def reset_table(self) -> None:
        """Forgets everything; graphs made before cannot run any more."""
        with self._lock:
            self._kernels, self._numbers = [], {}
            self._constants, self._constant_numbers = [], {}


kernel_side_table = KernelSideTable()


class TritonKernelWrapperMutation(HigherOrderOperator):
    """A launch of a kernel."""

    def __init__(self) -> None:
        super().__init__("triton_kernel_wrapper_mutation", cacheable=True)

    def __call__(self, *, kernel_idx: int, constant_args_idx: int, grid: Sequence, kwargs: dict):
        return super().__call__(
            kernel_idx=kernel_idx, constant_args_idx=constant_args_idx, grid=grid, kwargs=kwargs
        )


class TritonKernelWrapperFunctional(HigherOrderOperator):
    """A launch of a kernel on copies of some of its tensors: {name: copy}."""

    def __init__(self) -> None:
        super().__init__("triton_kernel_wrapper_functional", cacheable=True)

    def __call__(
        self,
        *,
        kernel_idx: int,
        constant_args_idx: int,
        grid: Sequence,
        kwargs: dict,
        tensors_to_clone: Sequence[str],
    ):
        return super().__call__(
            kernel_idx=kernel_idx,
            constant_args_idx=constant_args_idx,
            grid=grid,
            kwargs=kwargs,
            tensors_to_clone=tensors_to_clone,
        )


triton_kernel_wrapper_mutation = TritonKernelWrapperMutation()
triton_kernel_wrapper_functional = TritonKernelWrapperFunctional()
for _op in (triton_kernel_wrapper_mutation, triton_kernel_wrapper_functional):
    for _key in (
        DispatchKey.BackendSelect,
        DispatchKey.ADInplaceOrView,
        DispatchKey.Autograd,  # a launch has no derivative; operators that launch may have one
    ):
        _op.fallthrough(_key)


# ---- running


def _chosen(kernel: Any, grids: Sequence[tuple]) -> Any:
    """The grid of a launch: one, or one for each configuration among which the kernel chooses."""
    if len(grids) == 1:
        return tuple(grids[0])
    configs = [dict(c.kwargs) for c in kernel.configs]

    def grid(meta: dict[str, Any]) -> tuple:
        for config, found in zip(configs, grids, strict=True):
            if all(meta.get(name) == value for name, value in config.items()):
                return tuple(found)
        raise RuntimeError("a Triton kernel chose a configuration that it was not traced with")

    return grid


@triton_kernel_wrapper_mutation.py_impl(utils.COMPOSITE)
def _launch(*, kernel_idx, constant_args_idx, grid, kwargs) -> None:
    if any(isinstance(v, Tensor) and v.is_meta for v in kwargs.values()):
        return
    kernel = kernel_side_table.get_kernel(kernel_idx)
    constants = kernel_side_table.get_constant_args(constant_args_idx)
    kernel[_chosen(kernel, grid)](**kwargs, **constants)


def _copies(kwargs: dict[str, Any], names: Sequence[str]) -> dict[str, Tensor]:
    def copied(t: Tensor) -> Tensor:
        # The kernel was given the strides of the original.
        made = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device)
        return made.copy_(t)

    return {name: copied(kwargs[name]) for name in names}


@triton_kernel_wrapper_functional.py_impl(utils.COMPOSITE)
def _launch_on_copies(
    *, kernel_idx, constant_args_idx, grid, kwargs, tensors_to_clone
) -> dict[str, Tensor]:
    copies = _copies(kwargs, tensors_to_clone)
    triton_kernel_wrapper_mutation(
        kernel_idx=kernel_idx,
        constant_args_idx=constant_args_idx,
        grid=grid,
        kwargs={**kwargs, **copies},
    )
    return copies


# ---- tracing


@triton_kernel_wrapper_mutation.py_impl(FakeTensorMode)
def _launch_without_data(mode, **unused) -> None:
    return None


@triton_kernel_wrapper_functional.py_impl(FakeTensorMode)
def _copies_without_data(mode, *, kwargs, tensors_to_clone, **unused) -> dict[str, Tensor]:
    with mode:
        return _copies(kwargs, tensors_to_clone)


@triton_kernel_wrapper_mutation.py_impl(ProxyTorchDispatchMode)
def _trace(mode, **kwargs) -> None:
    op = triton_kernel_wrapper_mutation
    return utils.record(mode, op, {}, (), op(**kwargs), kwargs)


@triton_kernel_wrapper_functional.py_impl(ProxyTorchDispatchMode)
def _trace_functional(mode, **kwargs) -> dict[str, Tensor]:
    op = triton_kernel_wrapper_functional
    return utils.record(mode, op, {}, (), op(**kwargs), kwargs)


@triton_kernel_wrapper_mutation.py_functionalize_impl
def _functional(ctx, *, kernel_idx, constant_args_idx, grid, kwargs) -> None:
    names = [name for name, value in kwargs.items() if isinstance(value, Tensor)]
    with ctx.redispatch_to_next():
        found = triton_kernel_wrapper_functional(
            kernel_idx=kernel_idx,
            constant_args_idx=constant_args_idx,
            grid=grid,
            kwargs={name: ctx.unwrap_tensors(value) for name, value in kwargs.items()},
            tensors_to_clone=names,
        )
    for name in names:
        ctx.replace(kwargs[name], found[name])
        ctx.commit_update(kwargs[name])
        ctx.sync(kwargs[name])


@triton_kernel_wrapper_functional.py_functionalize_impl
def _functional_of_functional(ctx, *, kwargs, **others) -> dict[str, Tensor]:
    inner = {name: ctx.unwrap_tensors(value) for name, value in kwargs.items()}
    with ctx.redispatch_to_next():
        return ctx.wrap_tensors(triton_kernel_wrapper_functional(kwargs=inner, **others))


# ---- kernels as programs call them

_IN_GRAPHS = (Tensor, torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)


class TraceableTritonKernelWrapper:
    """A kernel whose launches are seen by traces: wrapper[grid](*args, **kwargs)."""

    def __init__(self, kernel: Any, kernel_idx: int | None = None, grid: Any = None) -> None:
        self.kernel = kernel
        self.kernel_idx = kernel_side_table.add_kernel(kernel) if kernel_idx is None else kernel_idx
        self.grid = grid

    def __getitem__(self, grid: Any) -> TraceableTritonKernelWrapper:
        return TraceableTritonKernelWrapper(self.kernel, self.kernel_idx, grid)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """A launch with the grid given by name."""
        if warmup:
            raise NotImplementedError("wrap_triton: a launch with warmup=True")
        return self[grid](*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.grid is None:
            raise RuntimeError("a Triton kernel is launched as kernel[grid](...)")
        names = list(self.kernel.arg_names)
        if len(args) > len(names):
            raise TypeError(f"the Triton kernel takes {len(names)} arguments, got {len(args)}")
        named = {**dict(zip(names, args, strict=False)), **kwargs}
        in_graph = {k: v for k, v in named.items() if isinstance(v, _IN_GRAPHS)}
        constants = {k: v for k, v in named.items() if k not in in_graph}
        return triton_kernel_wrapper_mutation(
            kernel_idx=self.kernel_idx,
            constant_args_idx=kernel_side_table.add_constant_args(constants),
            grid=self._grids(named),
            kwargs=in_graph,
        )

    def _grids(self, named: dict[str, Any]) -> list[tuple]:
        """The grid for every configuration that the kernel chooses among."""
        if not callable(self.grid):
            return [_tuple(self.grid)]
        configs: Sequence[Any] = getattr(self.kernel, "configs", None) or [None]
        return [_tuple(self.grid({**named, **({} if c is None else c.kwargs)})) for c in configs]


def _tuple(grid: Any) -> tuple:
    return tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
