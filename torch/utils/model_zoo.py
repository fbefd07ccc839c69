"""The old place of torch.hub.load_state_dict_from_url."""

from torch.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]


def __getattr__(name):
    if name != "tqdm":
        raise AttributeError(f"module 'torch.utils.model_zoo' has no attribute {name!r}")
    import torch.hub

    return torch.hub.tqdm
