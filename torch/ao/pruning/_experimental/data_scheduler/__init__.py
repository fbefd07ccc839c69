"""Settings of data sparsifiers that change from step to step."""

from torch.ao.pruning._experimental.data_scheduler.base_data_scheduler import BaseDataScheduler

__all__ = ["BaseDataScheduler"]
