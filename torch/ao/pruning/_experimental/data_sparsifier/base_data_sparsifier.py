"""What data sparsifiers share. The data is held, not copied, by a module whose attributes have the
names it was added under; a parametrization of each attribute puts the mask on it."""

from __future__ import annotations

import abc
from typing import Any

import torch
from torch import Tensor, nn
from torch.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier
from torch.ao.pruning.sparsifier.utils import FakeSparsity
from torch.nn.utils import parametrize

__all__ = ["BaseDataSparsifier"]

Entry = dict[str, Any]
EMBEDDING_TYPES = (nn.Embedding, nn.EmbeddingBag)


class _Container(nn.Module):
    """Holds the data under its names."""


def _sparse_masks(states: dict[str, Entry], sparse: bool) -> dict[str, Entry]:
    """The states with their masks in the sparse form, or in the dense one."""
    changed = {}
    for name, state in states.items():
        mask = state.get("mask")
        if mask is not None:
            mask = mask.to_sparse_coo() if sparse else mask.to_dense()
        changed[name] = {**state, "mask": mask}
    return changed


class BaseDataSparsifier(BaseSparsifier):
    """Masks for named data. A subclass chooses them in `update_mask`."""

    def __init__(self, data_list: list[tuple[str, Any]] | None = None, **defaults: Any) -> None:
        super().__init__(defaults)
        self._container = _Container()
        self.data_groups: dict[str, Entry] = {}
        for name, data in data_list or ():
            self.add_data(name=name, data=data, **defaults)

    def prepare(self, model: nn.Module, config: list[Entry] | None) -> None:
        raise NotImplementedError("data sparsifiers take their data by add_data, not a model")

    def _extract_weight(self, data: Any) -> Tensor:
        """The tensor that is masked."""
        if isinstance(data, EMBEDDING_TYPES):
            return data.weight
        if isinstance(data, Tensor):
            return data
        raise AssertionError(f"expected a tensor, a parameter or an embedding, got {type(data)}")

    # ---- data
    def add_data(self, name: str, data: Any, reuse_mask: bool = True, **config: Any) -> None:
        """Adds data under a name. What the name held before goes; its settings stay where no other
        ones are given, and so does its mask, if it is to be used again and fits."""
        weight = self._extract_weight(data)
        old = self.data_groups.get(name, {})
        mask = self.state[name].get("mask") if name in self.state and reuse_mask else None
        if mask is None or mask.shape != weight.shape:
            mask = torch.ones_like(weight, requires_grad=False)
        if name in self.data_groups:
            self._delete_data(name)
        self.data_groups[name] = {**self.defaults, **old, **config}
        self.state[name]["mask"] = mask
        self._hold(name, weight, mask)

    def _hold(self, name: str, weight: Tensor, mask: Tensor | None) -> None:
        if isinstance(weight, nn.Parameter):
            self._container.register_parameter(name, weight)
        else:
            self._container.register_buffer(name, weight)
        if mask is not None:
            parametrize.register_parametrization(self._container, name, FakeSparsity(mask))

    def _is_masked(self, name: str) -> bool:
        return parametrize.is_parametrized(self._container, name)

    def _delete_data(self, name: str) -> None:
        """Forgets data and settings; the tensor itself is as it was given."""
        holder = self._container
        if self._is_masked(name):
            parametrize.remove_parametrizations(holder, name, leave_parametrized=False)
        delattr(holder, name)
        for table in (self.state, self.data_groups):
            del table[name]

    def get_data(self, name: str, return_original: bool = True) -> Tensor:
        """The data as it was given, or with its mask."""
        if name not in self.data_groups:
            raise ValueError(f"there is no data named {name!r}")
        if not return_original:
            return getattr(self._container, name)
        if not self._is_masked(name):
            raise ValueError(f"the mask of {name!r} was squashed: its original values are gone")
        return getattr(self._container.parametrizations, name).original

    def get_mask(self, name: str) -> Tensor:
        """The mask of some data."""
        if name not in self.state:
            raise ValueError(f"there is no data named {name!r}")
        return self.state[name]["mask"]

    # ---- state
    def state_dict(self) -> Entry:
        """Masks, in the sparse form, settings and data."""
        return {
            "state": _sparse_masks(self.state, sparse=True),
            "data_groups": self.data_groups,
            "_container": self._container.state_dict(),
        }

    def load_state_dict(self, state_dict: Entry, strict: bool = True) -> None:
        """Takes masks, settings and data back. Not strict: what is here and not there stays."""
        states = _sparse_masks(state_dict["state"], sparse=False)
        values = state_dict["_container"]
        if strict:
            for name in list(self.data_groups):
                self._delete_data(name)
        for name, config in state_dict["data_groups"].items():
            if name in self.data_groups:
                self._delete_data(name)
            masked = values.get(f"parametrizations.{name}.original")
            weight = values[name] if masked is None else masked
            self.data_groups[name] = dict(config)
            self.state[name].update(states[name])
            self._hold(name, weight, None if masked is None else states[name]["mask"])

    def __getstate__(self) -> Entry:
        kept = {key: getattr(self, key) for key in ("defaults", "data_groups", "_container")}
        return {**kept, "state": self.state, "enable_mask_update": self.enable_mask_update}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for name, config in self.data_groups.items():
            lines += [f"\tData Group {name}", f"\t    name: {name}"]
            lines += [f"\t    {key}: {config[key]}" for key in sorted(config) if key != "data"]
        return "\n".join([*lines, ")"])

    # ---- masks
    def step(self) -> None:
        """Chooses all masks anew."""
        names = self.data_groups if self.enable_mask_update else ()
        with torch.no_grad():
            for name in names:
                self.update_mask(name, self.get_data(name), **self.data_groups[name])

    @abc.abstractmethod
    def update_mask(self, name: str, data: Tensor, **kwargs: Any) -> None:
        """Chooses the mask of some data."""

    def squash_mask(
        self,
        *args: Any,
        leave_parametrized: bool = True,
        names: str | list[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Takes masks away, of all data or of that named; the data keeps their zeros unless
        `leave_parametrized` is False."""
        chosen = [names] if isinstance(names, str) else names
        for name in list(self.data_groups) if chosen is None else chosen:
            parametrize.remove_parametrizations(
                self._container, name, leave_parametrized=leave_parametrized
            )
