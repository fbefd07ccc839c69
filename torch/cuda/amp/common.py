"""Whether mixed precision can be used."""

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Whether there is no CUDA device."""
    import torch

    return not torch.cuda.is_available()
