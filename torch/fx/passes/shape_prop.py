"""ShapeProp runs a graph and notes shape, dtype and layout of each value on its node."""

import traceback
from typing import Any, NamedTuple

import torch
from torch.fx._compatibility import compatibility
from torch.fx.interpreter import Interpreter
from torch.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


@compatibility(is_backward_compatible=True)
class TensorMetadata(NamedTuple):
    """What is known of a tensor without its data."""

    shape: torch.Size
    dtype: torch.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: torch.memory_format | None
    # Quantized tensors: scheme, scale and zero point.
    is_quantized: bool
    qparams: dict[str, Any]


_FORMATS = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)


def _extract_tensor_metadata(
    result: torch.Tensor, include_contiguity: bool = True
) -> TensorMetadata:
    """The metadata of a tensor; without include_contiguity its format is not asked for."""
    is_strided = result.layout == torch.strided
    layout = None
    if include_contiguity and is_strided:
        fits = (form for form in _FORMATS if result.is_contiguous(memory_format=form))
        layout = next(fits, None)
    qparams = _quantization(result) if result.is_quantized else {}
    return TensorMetadata(
        shape=result.shape,
        dtype=result.dtype,
        requires_grad=result.requires_grad,
        stride=result.stride() if is_strided else (),
        memory_format=layout,
        is_quantized=result.is_quantized,
        qparams=qparams,
    )


# Scheme -> {what is noted: how a tensor is asked for it}. Tensors become lists: tensors would
# compare element by element.
_PER_TENSOR = {"scale": "q_scale", "zero_point": "q_zero_point"}
_PER_CHANNEL = {
    "scale": "q_per_channel_scales",
    "zero_point": "q_per_channel_zero_points",
    "axis": "q_per_channel_axis",
}
_QUANTIZATION = {
    torch.per_tensor_affine: _PER_TENSOR,
    torch.per_tensor_symmetric: _PER_TENSOR,
    torch.per_channel_affine: _PER_CHANNEL,
    torch.per_channel_symmetric: _PER_CHANNEL,
}


def _quantization(result: torch.Tensor) -> dict[str, Any]:
    scheme = result.qscheme()
    asked = {key: getattr(result, name)() for key, name in _QUANTIZATION.get(scheme, {}).items()}
    plain = {k: v.tolist() if isinstance(v, torch.Tensor) else v for k, v in asked.items()}
    return {"qscheme": scheme, **plain}


@compatibility(is_backward_compatible=True)
class ShapeProp(Interpreter):
    """Runs a graph on example inputs; node.meta["tensor_meta"] gets a TensorMetadata, or a
    structure of them, and node.meta["type"] the type. With a fake mode nothing is computed."""

    def __init__(self, gm: torch.fx.GraphModule, fake_mode: Any = None) -> None:
        super().__init__(gm)
        if fake_mode is None:
            fake_mode = _mode_of_values(gm)
        self.fake_module = None
        self.fake_mode = fake_mode
        self.real_module = self.module

    def run_node(self, n: Node) -> Any:
        """Runs a node and notes what it gave."""
        try:
            result = self._run(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(
                f"ShapeProp error for: node={n.format_node()} with meta={n.meta}"
            ) from error
        found = False

        def note(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, torch.Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def _run(self, n: Node) -> Any:
        if self.fake_mode is None:
            return super().run_node(n)
        from torch._dispatch.python import enable_python_dispatcher

        with self.fake_mode, enable_python_dispatcher():
            return super().run_node(n)

    def propagate(self, *args: Any) -> Any:
        """Runs the graph on these inputs; returns its result."""
        if self.fake_mode is not None:
            args = tuple(
                self.fake_mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in args
            )
        return super().run(*args)


def _mode_of_values(gm: torch.fx.GraphModule) -> Any:
    """The fake mode of values that a tracer noted on the nodes, or None."""
    for node in gm.graph.nodes:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        if mode is not None:
            return mode
    return None
