"""DataLoader: a dataset, an order and a collation, iterated in this process. Every pass draws one
seed for workers first, also without workers: the streams are part of the contract."""

import warnings

import torch
from torch.utils.data import _utils
from torch.utils.data._utils.collate import default_collate, default_convert
from torch.utils.data._utils.worker import get_worker_info
from torch.utils.data.dataset import IterableDataset
from torch.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]


class _DatasetKind:
    """How a dataset is read."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        """The fetcher for a kind of dataset."""
        fetchers = (_utils.fetch._MapDatasetFetcher, _utils.fetch._IterableDatasetFetcher)
        return fetchers[kind](dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler):
    """Nothing, for ever: datasets without indices decide themselves when they end."""

    def __iter__(self):
        while True:
            yield None


class DataLoader:
    """Iterates over a dataset in batches."""

    dataset = None
    batch_size = None
    num_workers = 0
    pin_memory = False
    drop_last = False
    timeout = 0
    sampler = None
    pin_memory_device = ""
    prefetch_factor = None
    _iterator = None
    __initialized = False

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        self._check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if multiprocessing_context is not None:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading "
                f"(num_workers > 0), but got num_workers={num_workers}"
            )
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.in_order = in_order
        self._dataset_kind = _DatasetKind.Map
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            self._refuse_order(shuffle, sampler, batch_sampler)
        else:
            shuffle = bool(shuffle)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                    "sampler, and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None:
            sampler = self._default_sampler(dataset, shuffle, generator)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called = None
        self._iterator = None

    @staticmethod
    def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers):
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; use num_workers=0 to disable "
                "multiprocessing."
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers > 0:
            raise NotImplementedError(
                f"DataLoader: num_workers={num_workers} is not implemented; use num_workers=0"
            )
        if prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing."
                "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to "
                "None."
            )
        if persistent_workers:
            raise ValueError("persistent_workers option needs num_workers > 0")

    @staticmethod
    def _refuse_order(shuffle, sampler, batch_sampler):
        given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but "
                    f"got {name}={value}"
                )

    def _default_sampler(self, dataset, shuffle, generator):
        if self._dataset_kind == _DatasetKind.Iterable:
            return _InfiniteConstantSampler()
        if shuffle:
            return RandomSampler(dataset, generator=generator)
        return SequentialSampler(dataset)

    @property
    def multiprocessing_context(self):
        """The context of worker processes; None without workers."""
        return None

    def __setattr__(self, name, value):
        fixed = (
            "batch_size",
            "batch_sampler",
            "sampler",
            "drop_last",
            "dataset",
            "persistent_workers",
        )
        if self.__initialized and name in fixed:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    def __iter__(self):
        return self._get_iterator()

    def _get_iterator(self):
        return _SingleProcessDataLoaderIter(self)

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self):
        if self._dataset_kind != _DatasetKind.Iterable:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        whole, rest = divmod(length, self.batch_size)
        return whole if self.drop_last or rest == 0 else whole + 1


class _BaseDataLoaderIter:
    """One pass over a DataLoader."""

    def __init__(self, loader):
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        # Page-locked memory is for copies to a GPU: without one batches stay where they are.
        self._pin_memory = loader.pin_memory and torch.cuda.is_available()
        self._collate_fn = loader.collate_fn
        self._sampler_iter = iter(self._index_sampler)
        seed = torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
        self._base_seed = seed.item()
        self._num_yielded = 0

    def __iter__(self):
        return self

    def _next_index(self):
        return next(self._sampler_iter)

    def _next_data(self):
        raise NotImplementedError(f"{type(self).__name__} does not define _next_data")

    def __next__(self):
        data = self._next_data()
        if self._pin_memory:
            data = _utils.pin_memory.pin_memory(data)
        self._num_yielded += 1
        promised = self._IterableDataset_len_called
        if (
            self._dataset_kind == _DatasetKind.Iterable
            and promised is not None
            and self._num_yielded > promised
        ):
            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {promised} (when "
                f"accessing len(dataloader)), but {self._num_yielded} samples have been fetched. ",
                stacklevel=2,
            )
        return data

    def __len__(self):
        return len(self._index_sampler)

    def __getstate__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader):
        super().__init__(loader)
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )

    def _next_data(self):
        return self._dataset_fetcher.fetch(self._next_index())
