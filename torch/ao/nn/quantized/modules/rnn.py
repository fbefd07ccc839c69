"""LSTM on quantized tensors: every gate is a quantized layer. It is made of an observed module."""

from __future__ import annotations

from torch import nn
from torch.ao.nn import quantizable

__all__ = ["LSTM"]


class LSTM(quantizable.LSTM):
    """A quantizable LSTM whose parts were converted."""

    _FLOAT_MODULE = quantizable.LSTM

    def _get_name(self) -> str:
        return "QuantizedLSTM"

    @classmethod
    def from_float(cls, *args: object, **kwargs: object) -> nn.Module:
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed LSTM module. Please, see the "
            "examples on quantizable LSTMs."
        )

    @classmethod
    def from_observed(cls, other: nn.Module) -> nn.Module:
        """The quantized form of an observed LSTM."""
        from torch.ao.quantization.quantize import convert

        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"expected {cls._FLOAT_MODULE}, got {type(other)}")
        made = convert(other, inplace=False, remove_qconfig=True)
        made.__class__ = cls
        return made
