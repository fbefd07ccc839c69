"""Assertions on models for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.onnx._internal.exporter._verification import expected_of

if TYPE_CHECKING:
    from torch.onnx._internal.exporter._onnx_program import ONNXProgram

__all__ = ["assert_onnx_program"]


def assert_onnx_program(
    program: ONNXProgram,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    args: tuple[object, ...] | None = None,
    kwargs: dict[str, object] | None = None,
    strategy: str | None = None,
    backend: str = "onnxruntime",
) -> None:
    """Raises unless a model computes what its program does."""
    given, named, expected = expected_of(program, args, kwargs)
    run = program if backend == "onnxruntime" else program.call_reference
    torch.testing.assert_close(
        tuple(run(*given, **named)), tuple(expected), rtol=rtol, atol=atol, equal_nan=True
    )
