"""The old name of torch.ao.quantization."""

from torch._moved import names_of
from torch.ao import quantization as _new

__getattr__ = names_of("torch.quantization")
__all__ = [name for name in vars(_new) if not name.startswith("_")]
globals().update({name: getattr(_new, name) for name in __all__})
