"""AdamW under the module name that programs import it from."""

from torch.optim.adam import AdamW

__all__ = ["AdamW"]
