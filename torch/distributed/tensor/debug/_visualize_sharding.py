"""A picture of which ranks hold which part of a tensor."""

from __future__ import annotations

import itertools

from torch.distributed.tensor._api import DTensor
from torch.distributed.tensor._dtensor_spec import local_shape_and_offset


def visualize_sharding(dtensor: DTensor, header: str = "", use_rich: bool = False) -> None:
    """Prints, on the mesh's first rank, the ranks of each part of a tensor of one or two
    dimensions."""
    spec = dtensor._spec
    if dtensor.numel() == 0:
        return
    if not 1 <= dtensor.ndim <= 2:
        raise RuntimeError("visualize sharding supports only 1D or 2D DTensor")
    mesh = spec.mesh
    coordinate = mesh.get_coordinate()
    if coordinate is None or any(coordinate):
        return
    parts: dict[tuple, list[int]] = {}
    for place in itertools.product(*(range(size) for size in mesh.shape)):
        shape, offset = local_shape_and_offset(spec.shape, mesh.shape, place, spec.placements)
        ranges = tuple((begin, begin + size - 1) for begin, size in zip(offset, shape, strict=True))
        parts.setdefault(ranges, []).append(int(mesh.mesh[place]))
    rows = sorted({ranges[0] for ranges in parts})
    columns = sorted({ranges[1] for ranges in parts}) if dtensor.ndim == 2 else [None]
    table = [["", *(f"Col {a}-{b}" for a, b in columns)] if columns[0] else ["", ""]]
    for row in rows:
        cells = []
        for column in columns:
            key = (row,) if column is None else (row, column)
            ranks = ", ".join(f"{mesh.device_type}:{rank}" for rank in parts.get(key, []))
            cells.append(ranks)
        table.append([f"Row {row[0]}-{row[1]}", *cells])
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    if header:
        print(header)
    for line in table:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)))
