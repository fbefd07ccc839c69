"""Tuned parameters of block-sparse Triton kernels: a table in memory, and a search for better
ones. No table of measurements comes with this package, so a kernel that nobody tuned has none, and
callers take their defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# What the numbers of an entry mean.
_NAMES = {
    "scatter_mm": ("GROUP_SIZE", "SPLIT_N", "TILE_M", "TILE_N", "num_stages", "num_warps"),
    "bsr_dense_addmm": ("GROUP_SIZE_ROW", "SPLIT_N", "num_stages", "num_warps"),
    "_int_bsr_dense_addmm": ("GROUP_SIZE_ROW", "SPLIT_N", "num_stages", "num_warps"),
}
_tuned: dict[tuple, dict[tuple, tuple]] = {}


def update(op: str, device_name: str, version: object, key: tuple, value: tuple) -> None:
    """Sets the parameters of op for the inputs that key describes."""
    _tuned.setdefault((op, device_name, version), {})[key] = value


def _named(op: str, value: tuple) -> dict[str, Any]:
    if op not in _NAMES:
        raise NotImplementedError(f"names for op={op!r}")
    return dict(zip(_NAMES[op], value, strict=True))


def get_meta(
    op: str,
    key: tuple,
    device_name: str | None = None,
    version: object = (0, torch.float16, 0.5),
    exact: bool = False,
) -> dict | None:
    """The parameters of op for key, or None. A key with "*" in it asks for all that match, by their
    keys. Unless exact, parameters of another device with the same version will do."""
    if device_name is None:
        device_name = torch.cuda.get_device_name()
    found = _tuned.get((op, device_name, version))
    if found is None and not exact:
        others = (table for (o, _, v), table in _tuned.items() if (o, v) == (op, version))
        found = next(others, None)
    if found is None:
        return None
    if "*" in key:
        fits = [
            k
            for k in found
            if len(k) == len(key) and all(b in ("*", a) for a, b in zip(k, key, strict=True))
        ]
        return {k: _named(op, found[k]) for k in fits} or None
    return _named(op, found[key]) if key in found else None


def minimize(
    target_func: Callable[[dict], float],
    initial_parameters: dict,
    reference_parameters: dict,
    step_func: Callable[[str, Any, int, dict], Any],
    max_step: int = 2,
    verbose: bool = False,
    all_values: dict | None = None,
) -> tuple[dict, float, float, str]:
    """Descends from initial_parameters, one parameter and up to max_step steps at a time, until no
    neighbour is better. Returns the parameters found, the gain in per cent over
    reference_parameters, the value there, and how the value moves with each parameter."""
    known: dict[tuple, float] = {}
    names = sorted(initial_parameters)

    def value_at(parameters: dict) -> float:
        key = tuple(parameters[n] for n in names)
        if key not in known:
            known[key] = target_func(parameters)
            if verbose:
                print(f"{parameters}: {known[key]}")
        return known[key]

    def neighbours(parameters: dict, name: str) -> list[dict]:
        found = []
        for direction in range(-max_step, max_step + 1):
            if direction == 0:
                continue
            value = step_func(name, parameters[name], direction, parameters)
            allowed = all_values is None or name not in all_values or value in all_values[name]
            if value != parameters[name] and allowed:
                found.append({**parameters, name: value})
        return found

    reference = value_at(reference_parameters)
    best = dict(initial_parameters)
    while True:
        near = [p for name in names for p in neighbours(best, name)]
        better = min(near, key=value_at, default=best)
        if value_at(better) >= value_at(best):
            break
        best = better
    lowest = value_at(best)
    changes = []
    for name in names:
        worst = max((value_at(p) for p in neighbours(best, name)), default=lowest)
        changes.append(f"{name}={best[name]} ({100 * (worst - lowest) / (lowest or 1):+.1f} %)")
    gain = 100 * (reference - lowest) / (reference or 1)
    return best, gain, lowest, ", ".join(changes)
