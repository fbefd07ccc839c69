"""Translations of this package, for what onnxscript's library lacks: numbers that come from sizes,
and operators that newer versions of ONNX have as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import onnxscript
from onnxscript.function_libs.torch_lib.ops import nn as library

from torch.onnx._internal.exporter._registration import translation

__all__: list[str] = []

op = onnxscript.opset18
op23 = onnxscript.values.Opset("", 23)

Value = ir.Value
Number = ir.Value | int | float | bool


@translation("torch::sym_max")
def _sym_max(a: Number, b: Number) -> Value:
    return op.Max(a, b)


@translation("torch::sym_min")
def _sym_min(a: Number, b: Number) -> Value:
    return op.Min(a, b)


@translation("torch::sym_not")
def _sym_not(a: Number) -> Value:
    return op.Not(a)


@translation("torch::sym_float")
def _sym_float(a: Number) -> Value:
    return op.Cast(a, to=ir.DataType.FLOAT)


@translation("torch::sym_ite")
def _sym_ite(condition: Number, a: Number, b: Number) -> Value:
    return op.Where(condition, a, b)


@translation("torch::sym_sum")
def _sym_sum(parts: Sequence[Number]) -> Value:
    total, *rest = parts
    for part in rest:
        total = op.Add(total, part)
    return total


@translation("aten::sym_numel")
def _sym_numel(self: Value) -> Value:
    return op.Size(self)


@translation("aten::rms_norm", since=23)
def _rms_norm(
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value | None = None,
    eps: float | None = None,
) -> Value:
    if weight is None:
        weight = op.Expand(op.CastLike(1.0, input), list(normalized_shape))
    smallest = 1.1920928955078125e-07 if eps is None else eps
    return op23.RMSNormalization(input, weight, axis=-len(normalized_shape), epsilon=smallest)


@translation("aten::scaled_dot_product_attention", since=23)
def _attention(
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    if dropout_p or query.shape is None or len(query.shape) != 4:
        return library.aten_scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
        )
    settings = {} if scale is None else {"scale": float(scale)}
    found = op23.Attention(query, key, value, attn_mask, is_causal=int(is_causal), **settings)
    return found[0]


@translation("onnx::Attention.opset23", since=23)
def _onnx_attention(
    Q: Value,
    K: Value,
    V: Value,
    attn_mask: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    **settings: object,
) -> tuple[Value, ...]:
    kept = {name: value for name, value in settings.items() if value is not None}
    return op23.Attention(Q, K, V, attn_mask, past_key, past_value, **kept)


@translation("onnx::RotaryEmbedding.opset23", since=23)
def _onnx_rotary_embedding(
    X: Value,
    cos_cache: Value,
    sin_cache: Value,
    position_ids: Value | None = None,
    **settings: object,
) -> Value:
    return op23.RotaryEmbedding(X, cos_cache, sin_cache, position_ids, **settings)


def _window_means(size: int, windows: int) -> np.ndarray:
    """(windows, size): the row of a window averages the elements that it covers."""
    found = np.zeros((windows, size))
    for place in range(windows):
        begin, end = place * size // windows, -(-(place + 1) * size // windows)
        found[place, begin:end] = 1.0 / (end - begin)
    return found


@translation("aten::_adaptive_avg_pool2d", "aten::adaptive_avg_pool2d")
def _adaptive_avg_pool2d(self: Value, output_size: Sequence[int]) -> Value:
    sizes = list(self.shape)[-2:]
    if not all(isinstance(size, int) for size in sizes):
        raise NotImplementedError("adaptive pooling of a plane whose sizes vary")
    if all(size % windows == 0 for size, windows in zip(sizes, output_size, strict=True)):
        steps = [size // windows for size, windows in zip(sizes, output_size, strict=True)]
        return op.AveragePool(self, kernel_shape=steps, strides=steps)
    # Windows of several lengths: a product with the means of rows, then of columns.
    kind = self.dtype.numpy()
    rows = _window_means(sizes[0], output_size[0]).astype(kind)
    columns = _window_means(sizes[1], output_size[1]).astype(kind).T
    means = op.MatMul(op.Constant(value=ir.tensor(rows)), self)
    return op.MatMul(means, op.Constant(value=ir.tensor(columns)))


def _rnn(
    activation: str,
    input: Value,
    hx: Value,
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Value, Value]:
    """Layers of simple cells; the weights of both directions of a layer lie one above the other."""
    if train and dropout:
        raise NotImplementedError("a recurrent network with dropout that is being trained")
    directions, each = (2 if bidirectional else 1), (4 if has_biases else 2)
    steps = op.Transpose(input, perm=[1, 0, 2]) if batch_first else input
    last = []
    for layer in range(num_layers):
        begin = layer * directions
        cells = [params[each * i : each * (i + 1)] for i in range(begin, begin + directions)]
        stacked = [
            op.Concat(*[op.Unsqueeze(cell[i], [0]) for cell in cells], axis=0) for i in range(each)
        ]
        found, final = op.RNN(
            steps,
            stacked[0],
            stacked[1],
            op.Concat(*stacked[2:], axis=1) if has_biases else None,
            None,
            op.Slice(hx, [begin], [begin + directions], [0]),
            activations=[activation] * directions,
            direction="bidirectional" if bidirectional else "forward",
            hidden_size=int(cells[0][1].shape[-1]),
        )
        steps = op.Reshape(op.Transpose(found, perm=[0, 2, 1, 3]), [0, 0, -1])
        last.append(final)
    output = op.Transpose(steps, perm=[1, 0, 2]) if batch_first else steps
    return output, op.Concat(*last, axis=0)


@translation("aten::rnn_tanh.input")
def _rnn_tanh(*args: object) -> tuple[Value, Value]:
    return _rnn("Tanh", *args)


@translation("aten::rnn_relu.input")
def _rnn_relu(*args: object) -> tuple[Value, Value]:
    return _rnn("Relu", *args)
