"""Settings of torch.save and torch.load: see `config`."""

from torch.utils.serialization import config

__all__ = ["config"]
