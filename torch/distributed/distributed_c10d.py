"""The module that defines groups and collectives in PyTorch: the names of torch.distributed."""

from torch import distributed as _package
from torch.distributed import _needs_group

globals().update({name: value for name, value in vars(_package).items() if name[:1] != "_"})
_get_default_group = _needs_group("_get_default_group")
_get_default_store = _needs_group("_get_default_store")
