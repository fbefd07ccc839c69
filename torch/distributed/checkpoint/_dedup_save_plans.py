"""What several ranks would write is written by one of them."""

from __future__ import annotations

from dataclasses import replace

from torch.distributed.checkpoint.metadata import MetadataIndex
from torch.distributed.checkpoint.planner import SavePlan


def dedup_save_plans(
    all_plans: list[SavePlan], save_to_lowest_rank: bool = False
) -> list[SavePlan]:
    """Plans in which each part is once: with the rank that writes the least so far, or the lowest
    that has it."""
    owner: dict[MetadataIndex, int] = {}
    load = [0] * len(all_plans)
    holders: dict[MetadataIndex, list[int]] = {}
    sizes: dict[MetadataIndex, int] = {}
    for rank, plan in enumerate(all_plans):
        for item in plan.items:
            holders.setdefault(item.index, []).append(rank)
            sizes[item.index] = item.tensor_storage_size() or 1
    for index, ranks in holders.items():
        lowest = save_to_lowest_rank or len(ranks) == 1
        owner[index] = ranks[0] if lowest else min(ranks, key=lambda rank: load[rank])
        load[owner[index]] += sizes[index]
    return [
        replace(plan, items=[item for item in plan.items if owner[item.index] == rank])
        for rank, plan in enumerate(all_plans)
    ]
