"""torch.ops.quantized. Operators on packed weights are compiled (torch/csrc/quantized); the rest
are defined here when a program asks for one: arithmetic on real numbers that is rounded once to the
grid of the result."""

import torch

torch._C._register_quantized_operators()

from torch._quantized_ops import arithmetic, embedding, layers, recurrent  # noqa: E402, F401
