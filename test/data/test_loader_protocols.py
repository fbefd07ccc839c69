"""Loaders, iterators and workers of other packages beside ours."""

import pytest

from torch import nn
from torch.utils import data


def test_death_of_a_worker_that_is_not_ours():
    import os

    from torch.utils.data._utils import signal_handling

    pid = os.fork()
    if pid == 0:
        os._exit(3)
    try:
        signal_handling._set_worker_pids("test", (pid,))
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(RuntimeError, match=f"pid {pid}.* exit code 3"):
            signal_handling._error_if_any_worker_fails()
        signal_handling._error_if_any_worker_fails()
    finally:
        signal_handling._remove_worker_pids("test")
        os.waitpid(pid, 0)


def test_iterator_of_another_package():
    from torch.utils.data.dataloader import DataLoader, _BaseDataLoaderIter, _DatasetKind

    class Own(_BaseDataLoaderIter):
        def __init__(self, loader):
            super().__init__(loader)
            assert self._timeout == 0
            self.fetcher = _DatasetKind.create_fetcher(
                self._dataset_kind,
                self._dataset,
                self._auto_collation,
                self._collate_fn,
                self._drop_last,
            )

        def _next_data(self):
            return self.fetcher.fetch(self._next_index())

    class Loader(DataLoader):
        def __iter__(self):
            return Own(self)

    loader = Loader(list(range(5)), batch_size=2)
    found = iter(loader)
    assert [batch.tolist() for batch in found] == [[0, 1], [2, 3], [4]]
    found._reset(loader)
    assert next(found).tolist() == [0, 1]


def test_datasets_take_type_parameters():
    assert data.StackDataset[int].__origin__ is data.StackDataset
    assert data.ChainDataset[int].__origin__ is data.ChainDataset
    assert data.IterableDataset[int, str].__args__ == (int, str)

    class Mine(data.IterableDataset[int]):
        def __iter__(self):
            return iter([1, 2])

    assert list(Mine[str]()) == [1, 2]
    assert nn.DataParallel[nn.Linear].__origin__ is nn.DataParallel


class StandIn:
    """What other libraries hand to the iterators of a DataLoader in its place."""

    _IterableDataset_len_called = None
    _auto_collation = False
    collate_fn = staticmethod(lambda x: x)
    drop_last = False
    generator = None
    multiprocessing_context = None
    persistent_workers = False
    pin_memory = False
    pin_memory_device = ""
    timeout = 0
    worker_init_fn = None
    _dataset_kind = data.dataloader._DatasetKind.Iterable

    def __init__(self, workers):
        self.dataset, self.num_workers = range(3), workers
        self.prefetch_factor = 2 if workers else None
        self._index_sampler = iter(range(100))


@pytest.mark.parametrize("workers", [0, 1])
def test_iterators_take_what_is_like_a_loader(workers):
    kinds = {
        0: data.dataloader._SingleProcessDataLoaderIter,
        1: data.dataloader._MultiProcessingDataLoaderIter,
    }
    assert list(kinds[workers](StandIn(workers))) == [0, 1, 2]
