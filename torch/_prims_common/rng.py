"""The state of the CUDA generator as a seed and an offset, which a graph can carry as tensors."""

from __future__ import annotations

import torch

__all__ = ["CUDARngStateHelper"]


class CUDARngStateHelper:
    """Reads and writes (seed, offset) of the current device's generator."""

    @staticmethod
    def get_torch_state_as_tuple(fake_mode: object = None) -> tuple[torch.Tensor, torch.Tensor]:
        """The seed and the offset as integer tensors."""
        if not torch.cuda.is_available():
            raise RuntimeError("CUDA not available")
        state = torch.cuda.get_rng_state().view(torch.int64)
        return state[0].clone(), state[1].clone()

    @staticmethod
    def set_torch_state_tensor(seed: torch.Tensor, offset: torch.Tensor) -> None:
        """Puts the generator at a seed and an offset."""
        state = torch.stack([seed.reshape(()).cpu(), offset.reshape(()).cpu()]).to(torch.int64)
        torch.cuda.set_rng_state(state.view(torch.uint8))

    @staticmethod
    def set_new_offset(relative_offset: torch.Tensor) -> None:
        """Keeps the seed and moves the offset."""
        seed, _ = CUDARngStateHelper.get_torch_state_as_tuple()
        CUDARngStateHelper.set_torch_state_tensor(seed, relative_offset)
