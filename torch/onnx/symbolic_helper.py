"""What symbolic functions for the ONNX exporter import. The decorators answer the function."""

from torch import _later


def parse_args(*arg_descriptors):
    """Says how the arguments of a symbolic function are read."""
    return lambda fn: fn


def quantized_args(*arg_q_descriptors, scale=None, zero_point=None, quantize_output=True):
    """Says which arguments of a symbolic function may be quantized."""
    return lambda fn: fn


globals().update(
    _later.names(__name__, "_get_tensor_sizes _get_tensor_rank _maybe_get_const _unimplemented")
)
