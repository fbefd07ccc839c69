"""Parts of the DataLoader that projects import by these names."""

from torch.utils.data._utils import collate, fetch, pin_memory, worker

__all__ = ["collate", "fetch", "pin_memory", "worker"]
