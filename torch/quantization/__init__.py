"""The old name of torch.ao.quantization."""

from torch.ao import quantization as _new

__all__ = [name for name in vars(_new) if not name.startswith("_")]
globals().update({name: getattr(_new, name) for name in __all__})
