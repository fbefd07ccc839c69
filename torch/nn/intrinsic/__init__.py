"""The old name of torch.ao.nn.intrinsic, imported when a name of it is asked for."""

import importlib


def __getattr__(name: str) -> object:
    return getattr(importlib.import_module("torch.ao.nn.intrinsic"), name)
