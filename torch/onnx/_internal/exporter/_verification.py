"""How far the values of a model are from those of its program."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.utils._pytree as pytree

if TYPE_CHECKING:
    from torch.onnx._internal.exporter._onnx_program import ONNXProgram

__all__ = ["VerificationInfo", "expected_of", "verify_onnx_program"]

_EDGES = [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 1e6]


@dataclasses.dataclass
class VerificationInfo:
    """The differences of one value: the largest, and how many lie between which bounds."""

    name: str
    max_abs_diff: float
    max_rel_diff: float
    abs_diff_hist: tuple[torch.Tensor, torch.Tensor]
    rel_diff_hist: tuple[torch.Tensor, torch.Tensor]
    expected_dtype: torch.dtype
    actual_dtype: torch.dtype

    @classmethod
    def from_tensors(
        cls, name: str, expected: torch.Tensor | float, actual: torch.Tensor | float
    ) -> VerificationInfo:
        """Compares two tensors."""
        expected, actual = torch.as_tensor(expected), torch.as_tensor(actual)
        wide, other = expected.detach().double(), actual.detach().double()
        same = (torch.isnan(wide) & torch.isnan(other)) | (wide == other)
        apart = (wide - other).abs().masked_fill(same, 0.0)
        relative = (apart / wide.abs().clamp(min=1e-12)).masked_fill(same, 0.0)
        edges = torch.tensor(_EDGES)
        return cls(
            name,
            _largest(apart),
            _largest(relative),
            (_counts(apart, edges), edges),
            (_counts(relative, edges), edges),
            expected.dtype,
            actual.dtype,
        )

    def asdict(self) -> dict[str, object]:
        """The fields, with lists for tensors and dtypes."""
        return {
            "name": self.name,
            "max_abs_diff": self.max_abs_diff,
            "max_rel_diff": self.max_rel_diff,
            "abs_diff_hist": [t.tolist() for t in self.abs_diff_hist],
            "rel_diff_hist": [t.tolist() for t in self.rel_diff_hist],
            "expected_dtype": str(self.expected_dtype),
            "actual_dtype": str(self.actual_dtype),
        }


def _largest(differences: torch.Tensor) -> float:
    if differences.numel() == 0:
        return 0.0
    value = differences.max().item()
    return math.inf if math.isnan(value) else value


def _counts(differences: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    """How many differences lie in [edge, next edge); those above the last belong to the last."""
    known = torch.nan_to_num(differences.flatten(), nan=math.inf)
    places = torch.bucketize(known, edges[1:-1].double(), right=True)
    return torch.bincount(places, minlength=len(edges) - 1).float()


def expected_of(
    onnx_program: ONNXProgram, args: Sequence[object] | None, kwargs: dict[str, object] | None
) -> tuple[tuple[object, ...], dict[str, object], list[torch.Tensor]]:
    """(args, kwargs, what the program computes of them), with pairs for complex numbers. Without
    arguments those that the program was exported with."""
    program = onnx_program.exported_program
    if program is None:
        raise ValueError("The ONNX program does not hold the exported program it was made of.")
    if args is None and kwargs is None:
        if program.example_inputs is None:
            raise ValueError("No example inputs provided and the program has none.")
        args, kwargs = program.example_inputs
    args, kwargs = tuple(args or ()), dict(kwargs or {})
    with torch.no_grad():
        found = pytree.tree_leaves(program.module()(*args, **kwargs))
    values = []
    for value in found:
        if value is not None:
            tensor = torch.as_tensor(value)
            values.append(torch.view_as_real(tensor) if tensor.is_complex() else tensor)
    return args, kwargs, values


def verify_onnx_program(
    onnx_program: ONNXProgram,
    args: tuple[object, ...] | None = None,
    kwargs: dict[str, object] | None = None,
    compare_intermediates: bool = False,
) -> list[VerificationInfo]:
    """Runs the program and its model on arguments, or those it was exported with, and compares."""
    given, named, expected = expected_of(onnx_program, args, kwargs)
    if compare_intermediates:
        return _intermediates(onnx_program, given, named)
    names = [value.name for value in onnx_program.model.graph.outputs]
    found = onnx_program(*given, **named)
    return [
        VerificationInfo.from_tensors(name, wanted, value)
        for name, wanted, value in zip(names, expected, found, strict=True)
    ]


class _Noting(torch.fx.Interpreter):
    """Keeps tensors that nodes compute, by name."""

    def __init__(self, module: torch.fx.GraphModule, wanted: set[str]) -> None:
        super().__init__(module)
        self.wanted = wanted
        self.found: dict[str, torch.Tensor] = {}

    def run_node(self, n: torch.fx.Node) -> object:
        value = super().run_node(n)
        if n.name in self.wanted and isinstance(value, torch.Tensor):
            self.found[n.name] = value.detach().clone()
        return value


def _intermediates(
    onnx_program: ONNXProgram, args: tuple[object, ...], kwargs: dict[str, object]
) -> list[VerificationInfo]:
    """Compares all values that program and model know by the same name."""
    program = onnx_program.exported_program
    values = [o.name for node in onnx_program.model.graph for o in node.outputs if o.name]
    runner = _Noting(program.module(), set(values))
    flat = pytree.tree_leaves((args, kwargs))
    with torch.no_grad():
        runner.run(*flat, enable_io_processing=False)
    common = [name for name in values if name in runner.found]
    found = onnx_program.compute_values(common, args, kwargs)
    return [
        VerificationInfo.from_tensors(name, runner.found[name], value)
        for name, value in zip(common, found, strict=True)
    ]
