"""The order of work in a pipeline, and a picture of it. Each stage does one thing at a time: a
forward or a backward of a microbatch, when what it needs has come and in the order that 1F1B
prescribes: as many forwards ahead as there are stages behind, then in turns."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Slot", "draw", "schedule"]


@dataclass(frozen=True)
class Slot:
    """A piece of work: which stage, forward ("F") or backward ("B"), which microbatch, when."""

    stage: int
    kind: str
    microbatch: int
    begin: float
    end: float


def _order(stage: int, stages: int, microbatches: int) -> list[tuple[str, int]]:
    ahead = min(microbatches, stages - stage)
    order = [("F", i) for i in range(ahead)]
    for i in range(microbatches):
        order.append(("B", i))
        if i + ahead < microbatches:
            order.append(("F", i + ahead))
    return order


def schedule(
    stages: int, microbatches: int, forward: float, backward: float, transfer: float = 0.0
) -> list[Slot]:
    """When every piece of work runs. `transfer` is the time between neighbours."""
    waiting = [_order(stage, stages, microbatches) for stage in range(stages)]
    free = [0.0] * stages
    ends: dict[tuple[str, int, int], float] = {}
    done: list[Slot] = []
    while any(waiting):
        progressed = False
        for stage in range(stages):
            if not waiting[stage]:
                continue
            kind, number = waiting[stage][0]
            before = stage - 1 if kind == "F" else stage + 1
            ready = free[stage]
            if 0 <= before < stages:
                if (kind, before, number) not in ends:
                    continue
                ready = max(ready, ends[kind, before, number] + transfer)
            elif kind == "B":
                ready = max(ready, ends["F", stage, number])
            length = forward if kind == "F" else backward
            waiting[stage].pop(0)
            free[stage] = ends[kind, stage, number] = ready + length
            done.append(Slot(stage, kind, number, ready, ready + length))
            progressed = True
        if not progressed:
            raise RuntimeError("the schedule waits for itself")
    return done


def draw(slots: list[Slot], width: int = 96) -> str:
    """Stages as lines, time to the right: digits are forwards, letters backwards, dots waiting."""
    total = max((slot.end for slot in slots), default=0.0)
    if total <= 0:
        return ""
    stages = 1 + max(slot.stage for slot in slots)
    lines = [["."] * width for _ in range(stages)]
    for slot in slots:
        first = int(slot.begin / total * width)
        last = max(first + 1, int(slot.end / total * width))
        mark = "0123456789"[slot.microbatch % 10]
        if slot.kind == "B":
            mark = "abcdefghij"[slot.microbatch % 10]
        for column in range(first, min(last, width)):
            lines[slot.stage][column] = mark
    names = [f"stage {stage:>3} |" for stage in range(stages)]
    return "\n".join(name + "".join(line) + "|" for name, line in zip(names, lines, strict=True))
