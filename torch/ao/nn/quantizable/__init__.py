"""Layers that are made of parts which observers can be attached to."""

from torch.ao.nn.quantizable.modules import LSTM, LSTMCell, MultiheadAttention

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention"]
