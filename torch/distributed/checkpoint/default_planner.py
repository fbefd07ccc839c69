"""The planners that save and load use unless told otherwise. Nested dictionaries and lists are
flattened into names; what several ranks have the same is written once."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch.distributed.checkpoint import _version
from torch.distributed.checkpoint._traverse import traverse_state_dict, traverse_state_dict_v_2_3
from torch.distributed.checkpoint.metadata import (
    STATE_DICT_TYPE,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]

Path = tuple[str | int, ...]
VERSION = "1.0.0"


# ---- names ---------------------------------------------------------------------------------------
def flatten_state_dict(
    state: STATE_DICT_TYPE, traverse: Callable[..., None] = traverse_state_dict
) -> tuple[dict[str, Any], dict[str, Path]]:
    """Values by dotted name, and the way to each."""
    flat: dict[str, Any] = {}
    ways: dict[str, Path] = {}

    def visit(path: Path, value: Any) -> None:
        name = ".".join(map(str, path))
        if name in flat:
            raise ValueError(f"duplicated flatten key {name}")
        flat[name], ways[name] = value, path

    traverse(state, visit)
    return flat, ways


def set_element(state: Any, path: Path, value: Any) -> None:
    """Puts a value where its way leads; the texts of a way may stand for keys that are none."""
    for step in path[:-1]:
        state = state[_key(state, step)]
    state[_key(state, path[-1])] = value


def _key(state: Any, step: str | int) -> Any:
    if isinstance(state, dict) and step not in state:
        return next((key for key in state if str(key) == str(step)), step)
    return step


# ---- saving --------------------------------------------------------------------------------------
class DefaultSavePlanner(SavePlanner):
    """Writes each tensor and object once."""

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings: dict[str, Path] = {}

    def set_up_planner(
        self,
        state_dict: STATE_DICT_TYPE,
        storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Gets what is to be saved."""
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> SavePlan:
        """All that this rank has."""
        items: list[WriteItem] = []
        for name, value in self.state_dict.items():
            items.extend(_write_items(name, value))
        return SavePlan(items, planner_data=self.mappings)

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Shares out what several ranks have, the largest first, to those with the least."""
        holders: dict[MetadataIndex, list[int]] = {}
        items: dict[MetadataIndex, WriteItem] = {}
        for rank, plan in enumerate(all_plans):
            for item in plan.items:
                holders.setdefault(item.index, []).append(rank)
                items[item.index] = item
        load = [0] * len(all_plans)
        owner: dict[MetadataIndex, int] = {}
        order = sorted(items, key=lambda index: -(items[index].tensor_storage_size() or 1))
        for index in order:
            ranks = holders[index]
            lowest = self.dedup_save_to_lowest_rank or items[index].tensor_data is None
            chosen = ranks[0] if lowest else min(ranks, key=lambda rank: load[rank])
            owner[index] = chosen
            load[chosen] += items[index].tensor_storage_size() or 1
        plans = [
            replace(plan, items=[item for item in plan.items if owner[item.index] == rank])
            for rank, plan in enumerate(all_plans)
        ]
        mappings: dict[str, Path] = {}
        for plan in all_plans:
            mappings.update(plan.planner_data or {})
        return plans, Metadata(_described(plans), planner_data=mappings, version=VERSION)

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Gets what this rank writes."""
        self.plan = new_plan
        return new_plan

    def lookup_object(self, index: MetadataIndex) -> Any:
        """The object of a name."""
        return self.state_dict[index.fqn]

    def resolve_data(self, write_item: WriteItem) -> torch.Tensor | io.BytesIO:
        """A tensor, or an object as bytes."""
        found = self.lookup_object(write_item.index)
        return self.transform_object(write_item, _local(found, write_item.index))

    def transform_object(self, write_item: WriteItem, object: Any) -> torch.Tensor | io.BytesIO:
        """An object as it is written."""
        if write_item.type != WriteItemType.BYTE_IO:
            return object
        blob = io.BytesIO()
        torch.save(object, blob)
        return blob


def _local(value: Any, index: MetadataIndex) -> Any:
    """What this rank holds of a tensor that lies on several."""
    return value.__get_tensor_shard__(index) if hasattr(value, "__get_tensor_shard__") else value


def _chunks(value: torch.Tensor) -> list[ChunkStorageMetadata]:
    """The parts of a tensor that this rank has."""
    if hasattr(value, "__create_chunk_list__"):
        return value.__create_chunk_list__()
    return [ChunkStorageMetadata(torch.Size([0] * value.dim()), value.size())]


def _is_tensor(value: Any) -> bool:
    """Whether a value is a tensor, or knows the parts of one."""
    return isinstance(value, torch.Tensor) or hasattr(value, "__create_chunk_list__")


def _write_items(name: str, value: Any) -> list[WriteItem]:
    if not _is_tensor(value):
        return [WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO)]
    properties = TensorProperties.create_from_tensor(value)
    kind = WriteItemType.TENSOR
    if hasattr(value, "__create_chunk_list__"):
        kind = WriteItemType.SHARD
    return [
        WriteItem(
            MetadataIndex(name, chunk.offsets, None if kind == WriteItemType.SHARD else 0),
            kind,
            tensor_data=TensorWriteData(chunk, properties, value.size()),
        )
        for chunk in _chunks(value)
    ]


def _described(plans: list[SavePlan]) -> dict[str, TensorStorageMetadata | BytesStorageMetadata]:
    found: dict[str, TensorStorageMetadata | BytesStorageMetadata] = {}
    for plan in plans:
        for item in plan.items:
            data = item.tensor_data
            if data is None:
                found[item.index.fqn] = BytesStorageMetadata()
                continue
            entry = found.setdefault(
                item.index.fqn, TensorStorageMetadata(data.properties, data.size, [])
            )
            entry.chunks.append(data.chunk)
    return found


# ---- loading -------------------------------------------------------------------------------------
class DefaultLoadPlanner(LoadPlanner):
    """Reads every part of what a rank asks for, however it was divided when it was saved."""

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load
        self.mappings: dict[str, Path] = {}

    def set_up_planner(
        self,
        state_dict: STATE_DICT_TYPE,
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Gets what is to be filled, and what there is."""
        self.original_state_dict = state_dict
        _version._derived_version = None
        if self.flatten_state_dict:
            flat, self.mappings = flatten_state_dict(state_dict)
            names = set() if metadata is None else set(metadata.state_dict_metadata)
            if names and not names.issuperset(flat):
                old, ways = flatten_state_dict(state_dict, traverse_state_dict_v_2_3)
                if names.issuperset(old):
                    flat, self.mappings = old, ways
                    _version._derived_version = "2_3"
            state_dict = flat
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator

    def create_local_plan(self) -> LoadPlan:
        """A part of the checkpoint for each part that is asked for."""
        items: list[ReadItem] = []
        for name, value in self.state_dict.items():
            entry = self.metadata.state_dict_metadata.get(name)
            if entry is None:
                if self.allow_partial_load:
                    continue
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            items.extend(_read_items(name, value, entry))
        return LoadPlan(items)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return global_plan

    def finish_plan(self, new_plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return new_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Takes an object."""
        name = read_item.dest_index.fqn
        loaded = torch.load(value, map_location="cpu", weights_only=False)
        self.state_dict[name] = loaded
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], loaded)

    def lookup_tensor(self, index: MetadataIndex) -> torch.Tensor:
        """The tensor of a name, or what this rank holds of it."""
        return _local(self.state_dict[index.fqn], index)

    def resolve_tensor(self, read_item: ReadItem) -> torch.Tensor:
        """The part of a tensor that an item fills."""
        tensor = self.lookup_tensor(read_item.dest_index)
        return self.transform_tensor(read_item, tensor)

    def transform_tensor(self, read_item: ReadItem, tensor: torch.Tensor) -> torch.Tensor:
        """The part of a tensor that an item fills."""
        for dim, (begin, length) in enumerate(
            zip(read_item.dest_offsets, read_item.lengths, strict=True)
        ):
            tensor = tensor.narrow(dim, begin, length)
        return tensor

    def commit_tensor(self, read_item: ReadItem, tensor: torch.Tensor) -> None:
        """The data are in place."""


def _read_items(name: str, value: Any, entry: Any) -> list[ReadItem]:
    if not isinstance(entry, TensorStorageMetadata):
        index = MetadataIndex(name)
        nothing = torch.Size([0])
        return [ReadItem(LoadItemType.BYTE_IO, index, nothing, index, nothing, nothing)]
    if not _is_tensor(value):
        raise ValueError(f"{name} is a tensor in the checkpoint and {type(value)} here")
    if value.size() != entry.size:
        raise ValueError(
            f"Size mismatch between saved {entry.size} and current: {value.size()} for {name}"
        )
    return [
        item
        for wanted in _chunks(value)
        for i, stored in enumerate(entry.chunks)
        for item in _overlap(name, wanted, stored, i)
    ]


def _overlap(
    name: str, wanted: ChunkStorageMetadata, stored: ChunkStorageMetadata, index: int
) -> list[ReadItem]:
    """The reading of what a part that is wanted and one that is stored have in common."""
    begins, lengths = [], []
    for a, n, b, m in zip(wanted.offsets, wanted.sizes, stored.offsets, stored.sizes, strict=True):
        begins.append(max(a, b))
        lengths.append(min(a + n, b + m) - begins[-1])
    if any(length <= 0 for length in lengths) and wanted.sizes.numel():
        return []
    return [
        ReadItem(
            LoadItemType.TENSOR,
            MetadataIndex(name, wanted.offsets, 0),
            torch.Size(x - a for x, a in zip(begins, wanted.offsets, strict=True)),
            MetadataIndex(name, stored.offsets, index),
            torch.Size(x - b for x, b in zip(begins, stored.offsets, strict=True)),
            torch.Size(lengths),
        )
    ]


# ---- the steps by themselves, for planners that are put together of them -------------------------
def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """All that a rank has, of a flat dictionary."""
    return SavePlan([i for name, value in state_dict.items() for i in _write_items(name, value)])


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """The metadata of plans without duplicates. Their indices get the place of each part among
    those of its tensor."""
    counts: dict[str, int] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            if item.tensor_data is not None and rewrite_index_hints:
                place = counts.get(item.index.fqn, 0)
                counts[item.index.fqn] = place + 1
                item = replace(item, index=replace(item.index, index=place))
            items.append(item)
        plans.append(replace(plan, items=items))
    return plans, Metadata(_described(plans), version=VERSION)


def create_default_local_load_plan(
    state_dict: dict[str, Any], metadata: Metadata, strict: bool = True
) -> LoadPlan:
    """A part of the checkpoint for each part that a flat dictionary asks for."""
    planner = DefaultLoadPlanner(flatten_state_dict=False, allow_partial_load=not strict)
    planner.set_up_planner(state_dict, metadata)
    return planner.create_local_plan()


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans as they are."""
    return all_plans


def _create_default_local_metadata(state_dict: dict[str, Any]) -> Metadata:
    """What a checkpoint of a flat dictionary holds, as far as one rank can say it."""
    found: dict[str, TensorStorageMetadata | BytesStorageMetadata] = {}
    for name, value in state_dict.items():
        if not _is_tensor(value):
            found[name] = BytesStorageMetadata()
            continue
        chunks = _chunks(value)
        if hasattr(value, "local_shards"):  # knows the parts of all ranks
            chunks = [
                ChunkStorageMetadata(torch.Size(one.shard_offsets), torch.Size(one.shard_sizes))
                for one in value.metadata().shards_metadata
            ]
        properties = TensorProperties.create_from_tensor(value)
        found[name] = TensorStorageMetadata(properties, value.size(), chunks)
    return Metadata(found, version=VERSION)
