"""Random operators of a trace as functions of a seed and an offset (`functionalize_rng_ops`).

A traced graph then has two more inputs, the seed and the offset at which the generator stands, and
one more output, how far the graph moves the offset; the runtime reads the generator before a graph
and moves it afterwards. The same holds for the backward graph. Numbers that are drawn again in the
backward pass are the same by construction."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

__all__ = ["Philox", "moves_generator"]


class Philox:
    """The seed and the offset of the graph that is being traced."""

    def __init__(self) -> None:
        self.seed: Tensor | None = None
        self.base: Tensor | None = None
        self.moved: Tensor | None = None  # what the operators so far have added to the offset

    def begin(self, placeholder: Callable[[str, Tensor], object], kind: str) -> list[Tensor]:
        """Starts a graph, "fwd" or "bwd": its inputs for the state."""
        with disable_proxy_modes_tracing(), torch.no_grad():
            made = [torch.empty((), dtype=torch.int64, device="cpu") for _ in range(2)]
        state = [torch._from_functional_tensor(t) if _is_functional(t) else t for t in made]
        for name, value in zip((f"{kind}_seed_1", f"{kind}_base_offset_1"), state, strict=True):
            placeholder(name, value)
        self.seed, self.base = state
        self.moved = None
        return state

    def draw(self, size: Sequence[int], device: torch.device, dtype: torch.dtype | None) -> Tensor:
        """Uniform numbers from the state, which moves on."""
        from torch._prims.rng_prims import refuse_device

        refuse_device(torch.device(device))
        offset = self.base if self.moved is None else self.base + self.moved
        values, step = torch.ops.rngprims.philox_rand(
            size, self.seed, offset, None, device=device, dtype=dtype
        )
        self.moved = step if self.moved is None else self.moved + step
        return values

    def end(self) -> Tensor:
        """The offset behind the graph."""
        return self.base.clone() if self.moved is None else self.base + self.moved

    def table(self) -> dict:
        """The random operators as functions of the state."""
        aten = torch.ops.aten
        return {
            aten.rand.default: self._rand,
            aten.rand_like.default: self._rand_like,
            aten.native_dropout.default: self._native_dropout,
        }

    def _rand(
        self,
        size: Sequence[int],
        *,
        dtype: torch.dtype | None = None,
        layout: torch.layout | None = None,
        device: torch.device | None = None,
        pin_memory: bool | None = None,
    ) -> Tensor:
        return self.draw(size, torch.device(device or "cpu"), dtype)

    def _rand_like(
        self,
        input: Tensor,
        *,
        dtype: torch.dtype | None = None,
        layout: torch.layout | None = None,
        device: torch.device | None = None,
        pin_memory: bool | None = None,
        memory_format: torch.memory_format | None = None,
    ) -> Tensor:
        return self.draw(input.shape, device or input.device, dtype or input.dtype)

    def _native_dropout(self, input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
        if train is False or p == 0:
            return input.clone(), torch.ones_like(input, dtype=torch.bool)
        if p == 1:
            return torch.zeros_like(input), torch.zeros_like(input, dtype=torch.bool)
        kept = self.draw(input.shape, input.device, input.dtype) > p
        return kept * input * (1 / (1 - p)), kept

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Inside, the program that reads or sets the state of CUDA's generator means this one."""
        names = ("get_rng_state", "set_rng_state")
        before = {name: getattr(torch.cuda, name) for name in names}
        torch.cuda.get_rng_state, torch.cuda.set_rng_state = self._get_state, self._set_state
        try:
            yield
        finally:
            for name, function in before.items():
                setattr(torch.cuda, name, function)

    def _get_state(self, device: object = "cuda") -> Tensor:
        return torch.stack([self.seed, self.end()])

    def _set_state(self, new_state: Tensor, device: object = "cuda") -> None:
        seed, offset = new_state.unbind(0)
        self.seed, self.base, self.moved = seed, offset, None


def _is_functional(value: Tensor) -> bool:
    return torch._is_functional_tensor(value)


def moves_generator(
    call: Callable[[list[object]], Sequence[object]], place: int
) -> Callable[[list[object]], list[object]]:
    """A graph that takes the state as its last arguments and returns the new offset at a place,
    as one that does not."""
    from torch._prims_common import CUDARngStateHelper

    def run(args: list[object]) -> list[object]:
        if torch.cuda.is_available():
            args.extend(CUDARngStateHelper.get_torch_state_as_tuple())
        else:
            args.extend(torch.zeros((), dtype=torch.int64) for _ in range(2))
        found = call(args)
        values = list(found) if isinstance(found, (list, tuple)) else [found]
        offset = values.pop(place)
        if torch.cuda.is_available():
            CUDARngStateHelper.set_new_offset(offset)
        return values

    run._boxed_call = True
    return run
