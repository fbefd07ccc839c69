"""Bringing a pipe to where another run of it was."""

from __future__ import annotations

import itertools

import torch
from torch.utils.data.datapipes._hook_iterator import _SnapshotState
from torch.utils.data.datapipes.datapipe import IterDataPipe
from torch.utils.data.graph_settings import apply_random_seed

__all__ = ["_simple_graph_snapshot_restoration"]


def _simple_graph_snapshot_restoration(
    datapipe: IterDataPipe, n_iterations: int, rng: torch.Generator | None = None
) -> None:
    """Reads the first `n_iterations` items and drops them; the next iterator goes on from there.

    Steps that draw random numbers are seeded from `rng`, which has to be as it was when the run
    began that is to be continued."""
    if datapipe._snapshot_state == _SnapshotState.Restored:
        raise RuntimeError(
            "Snapshot restoration cannot be applied. You can only restore a simple snapshot to a "
            "graph that has not been restored."
        )
    if rng is not None:
        apply_random_seed(datapipe, rng)
    iterator = iter(datapipe)
    for _ in itertools.islice(iterator, n_iterations):
        pass
    datapipe._fast_forward_iterator = iterator
    datapipe._snapshot_state = _SnapshotState.Restored
