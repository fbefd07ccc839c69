"""Quantization of traced models. A flow has five steps, each in a file: tracing and fusing
(`fuse.py`), choosing configurations (`qconfig_mapping_utils.py`), observers (`prepare.py`),
rounding in place of observers (`convert.py`), and operators on levels
(`_lower_to_native_backend.py`)."""

from torch.ao.quantization.fx.convert import convert
from torch.ao.quantization.fx.fuse import fuse
from torch.ao.quantization.fx.prepare import prepare

__all__ = ["convert", "fuse", "prepare"]
