"""The old name of torch.ao.nn.intrinsic, imported when a name of it is asked for."""

from torch._moved import names_of

__getattr__ = names_of("torch.nn.intrinsic")
