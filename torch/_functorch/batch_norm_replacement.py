"""Batch normalization without running statistics, which functions under vmap cannot update."""

import torch

__all__ = ["batch_norm_without_running_stats", "replace_all_batch_norm_modules_"]


def batch_norm_without_running_stats(module) -> None:
    """Makes one batch norm module use the statistics of its input alone."""
    if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.track_running_stats:
        module.running_mean = None
        module.running_var = None
        module.num_batches_tracked = None
        module.track_running_stats = False


def replace_all_batch_norm_modules_(root):
    """Makes every batch norm of a module use the statistics of its input alone; gives it back."""
    batch_norm_without_running_stats(root)
    for module in root.modules():
        batch_norm_without_running_stats(module)
    return root
