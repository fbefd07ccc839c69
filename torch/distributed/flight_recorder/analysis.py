"""Who is to blame. Operations of a group have numbers, and all members must do the same under one
number. So for each group the first number is looked for under which they did not: two ranks with
different operations or shapes, or ranks that never came. Ranks that wrote nothing come first, for
they are probably dead."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Finding", "analyse"]

Entry = dict[str, Any]


@dataclass
class Finding:
    """Something that went wrong: in which group and operation, who did it, and the details."""

    kind: str  # dead, missing, mismatch, waiting
    group: str
    sequence: int
    operation: str
    culprits: list[int]
    details: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        who = ", ".join(map(str, self.culprits)) or "unknown"
        title = {
            "dead": "wrote no recording, and is probably gone",
            "missing": "never came to this operation",
            "mismatch": "did something else than the others",
            "waiting": "never sent or received the other side of it",
        }[self.kind]
        plural = "ranks" if len(self.culprits) > 1 else "rank"
        lines = [f"CULPRIT: {plural} {who} {title}"]
        if self.operation:
            lines.append(f"  in group {self.group!r}, operation {self.sequence}: {self.operation}")
        return "\n".join(lines + [f"  {line}" for line in self.details])


def _what(entry: Entry) -> str:
    """The operation and its tensors, as ranks must agree on them."""
    name = entry.get("profiling_name", "?").rpartition(":")[2]
    dtypes = entry.get("input_dtypes") or entry.get("output_dtypes") or []
    sizes = entry.get("input_sizes") or entry.get("output_sizes") or []
    if name in ("scatter", "broadcast"):
        dtypes, sizes = entry.get("output_dtypes", []), entry.get("output_sizes", [])
    shapes = ", ".join(f"{d}{list(s)}" for d, s in zip(dtypes, sizes, strict=False))
    if name in ("all_to_all", "all_to_all_single"):
        shapes = ", ".join(dict.fromkeys(dtypes))  # amounts may differ
    words = [f"{name}({shapes})"]
    if "reduce" in name and entry.get("reduce_op"):
        words.append(f"op={entry['reduce_op']}")
    if name in ("broadcast", "reduce", "gather", "scatter"):
        words.append(f"root={entry.get('root', '?')}")
    return " ".join(words)


def _members(dumps: dict[int, dict], group: str) -> list[int]:
    """The ranks of a group, as the recordings tell; those that recorded it where they do not."""
    for dump in dumps.values():
        text = dump.get("pg_config", {}).get(group, {}).get("ranks")
        if text:
            return json.loads(text) if isinstance(text, str) else list(text)
    return [
        rank
        for rank, dump in dumps.items()
        if any(e["process_group"][0] == group for e in dump.get("entries", []))
    ]


def _last(dump: dict) -> str:
    """What a rank did last."""
    entries = dump.get("entries", [])
    if not entries:
        return "did nothing at all"
    entry = max(entries, key=lambda e: e.get("time_created_ns", 0))
    number = entry.get("collective_seq_id")
    return f"last did {_what(entry)} (operation {number}, {entry.get('state', '?')})"


def _in_group(dumps: dict[int, dict], group: str) -> dict[int, dict[int, Entry]]:
    """Collectives of a group by rank and number."""
    return {
        rank: {
            entry["collective_seq_id"]: entry
            for entry in dump.get("entries", [])
            if entry["process_group"][0] == group and not entry.get("is_p2p")
        }
        for rank, dump in dumps.items()
    }


def _collectives(dumps: dict[int, dict], group: str, members: list[int]) -> Finding | None:
    by_rank = _in_group(dumps, group)
    present = [rank for rank in members if rank in dumps]
    numbers = sorted({n for rank in present for n in by_rank[rank]})
    for number in numbers:
        here = {rank: by_rank[rank][number] for rank in present if number in by_rank[rank]}
        # What is older than the ring of a rank is not missing.
        absent = [r for r in present if r not in here and max(by_rank[r], default=-1) < number]
        texts = {rank: _what(entry) for rank, entry in here.items()}
        common, count = Counter(texts.values()).most_common(1)[0]
        if count < len(texts):
            # Of two that disagree neither is in the right.
            tied = list(Counter(texts.values()).values()).count(count) > 1
            wrong = sorted(texts) if tied else [r for r, t in texts.items() if t != common]
            details = [f"rank {rank}: {text}" for rank, text in sorted(texts.items())]
            return Finding("mismatch", group, number, common, wrong, details)
        unfinished = [r for r, e in here.items() if e.get("state") != "completed"]
        if absent and unfinished:
            details = [f"rank {rank} {_last(dumps[rank])}" for rank in absent]
            details.append(f"waiting for it: {', '.join(map(str, sorted(unfinished)))}")
            return Finding("missing", group, number, common, absent, details)
    return None


def _transfers(dumps: dict[int, dict], group: str, members: list[int]) -> Finding | None:
    """Sends without a receive and receives without a send."""
    open_ends: Counter = Counter()
    for rank, dump in dumps.items():
        for entry in dump.get("entries", []):
            if entry["process_group"][0] != group or not entry.get("is_p2p") or "peer" not in entry:
                continue
            name = entry["profiling_name"].rpartition(":")[2]
            peer = entry["peer"]
            peer = members[peer] if peer < len(members) else peer
            if name == "send":
                open_ends[rank, peer, entry.get("tag", 0)] += 1
            elif name == "recv":
                open_ends[peer, rank, entry.get("tag", 0)] -= 1
    for (source, target, tag), count in sorted(open_ends.items()):
        if count == 0 or source not in dumps or target not in dumps:
            continue
        late = target if count > 0 else source
        verb = "recv" if count > 0 else "send"
        details = [
            f"{abs(count)} more {'send' if count > 0 else 'recv'} than {verb} from rank {source} "
            f"to rank {target} with tag {tag}",
            f"rank {late} {_last(dumps[late])}",
        ]
        return Finding("waiting", group, 0, f"{verb} with tag {tag}", [late], details)
    return None


def analyse(dumps: dict[int, dict[str, Any]], world_size: int | None = None) -> list[Finding]:
    """What went wrong, the most telling first; empty where all ranks agree."""
    groups = list(dict.fromkeys(
        entry["process_group"][0] for dump in dumps.values() for entry in dump.get("entries", [])
    ))  # fmt: skip
    found: list[Finding] = []
    everybody = set(range(world_size)) if world_size else set()
    for group in groups:
        everybody.update(_members(dumps, group))
    dead = sorted(everybody - set(dumps))
    if dead:
        reasons = [f"rank {rank}: {dump['reason'].splitlines()[0]}"
                   for rank, dump in sorted(dumps.items()) if dump.get("reason")]  # fmt: skip
        found.append(Finding("dead", "", 0, "", dead, reasons[:4]))
    for group in groups:
        members = _members(dumps, group)
        for look in (_collectives, _transfers):
            finding = look(dumps, group, members)
            if finding is not None:
                found.append(finding)
    return found
