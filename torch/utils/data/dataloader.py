"""DataLoader: a dataset, an order and a collation, iterated in this process or by workers. Every
pass draws one seed for workers first, also without workers: the streams are part of the
contract."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from torch.utils.data._iterators import (
    Progress,
    _BaseDataLoaderIter,  # noqa: F401 (projects import it from here)
    _DatasetKind,
    _InfiniteConstantSampler,
    _SingleProcessDataLoaderIter,
    generators_of,
)
from torch.utils.data._utils.collate import default_collate, default_convert
from torch.utils.data._utils.worker import get_worker_info
from torch.utils.data.datapipes.datapipe import IterDataPipe
from torch.utils.data.dataset import Dataset, IterableDataset
from torch.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_T_co = TypeVar("_T_co", covariant=True)
_T = TypeVar("_T")
# Types of two arguments, for annotations.
_collate_fn_t = Callable[[list[_T]], Any]
_worker_init_fn_t = Callable[[int], None]


def __getattr__(name) -> Any:
    # Loaded when there are workers: multiprocessing costs a program 30 ms.
    if name == "_MultiProcessingDataLoaderIter":
        from torch.utils.data._worker_iterator import _MultiProcessingDataLoaderIter

        return _MultiProcessingDataLoaderIter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _start_context(context):
    """A context of multiprocessing, given as itself or by the name of a start method."""
    import multiprocessing
    from multiprocessing.context import BaseContext

    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{methods}, but got multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={context}"
        )
    return context


def _sharding_worker_init_fn(worker_init_fn, world_size, rank_id, worker_id) -> None:
    """Gives the data pipe of a worker its share among all workers of all processes."""
    from torch.utils.data.graph_settings import apply_sharding

    info = get_worker_info()
    shards = world_size * info.num_workers
    apply_sharding(info.dataset, shards, rank_id * info.num_workers + worker_id)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)


class DataLoader(Generic[_T_co]):
    """Iterates over a dataset in batches.

    With num_workers > 0 batches are read ahead in processes. A worker that dies ends the pass with
    a RuntimeError that names it; one that takes longer than `timeout` seconds for a batch is killed
    and does the same. state_dict() says where in a pass a loader is; another with the same
    arguments continues there after load_state_dict()."""

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
    _progress = None
    _resume = None
    __initialized = False

    def __init__(
        self,
        dataset: Dataset[_T_co],
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
    ) -> None:
        self._check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        if isinstance(dataset, IterDataPipe):
            from torch.utils.data.graph_settings import apply_shuffle_settings

            dataset, shuffle = apply_shuffle_settings(dataset, shuffle=shuffle), None
        self.dataset = dataset
        self.num_workers = num_workers
        self.multiprocessing_context = multiprocessing_context
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
        self._progress = None
        self._resume = None
        self.check_worker_number_rationality()

    @staticmethod
    def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers) -> None:
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; use num_workers=0 to disable "
                "multiprocessing."
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if num_workers > 0:
            if prefetch_factor == 0:
                raise ValueError("prefetch_factor option should be positive with workers")
            return
        if prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing."
                "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to "
                "None."
            )
        if persistent_workers:
            raise ValueError("persistent_workers option needs num_workers > 0")

    @staticmethod
    def _refuse_order(shuffle, sampler, batch_sampler) -> None:
        given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but "
                    f"got {name}={value}"
                )

    def _default_sampler(
        self, dataset, shuffle, generator
    ) -> RandomSampler | SequentialSampler | _InfiniteConstantSampler:
        if self._dataset_kind == _DatasetKind.Iterable:
            return _InfiniteConstantSampler()
        if shuffle:
            return RandomSampler(dataset, generator=generator)
        return SequentialSampler(dataset)

    @property
    def multiprocessing_context(self):
        """How workers are started; None for the default."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading "
                    f"(num_workers > 0), but got num_workers={self.num_workers}"
                )
            context = _start_context(context)
        self.__multiprocessing_context = context

    def check_worker_number_rationality(self) -> None:
        """Warns of more workers than processors."""
        if not self.num_workers:
            return
        processors = len(os.sched_getaffinity(0))
        if self.num_workers > processors:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our "
                f"suggested max number of worker in current system is {processors}: more of them "
                "take turns and may make loading slower.",
                stacklevel=3,
            )

    def __setattr__(self, name, value) -> None:
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

    def __iter__(self) -> Any:
        if not self.persistent_workers or self.num_workers == 0:
            return self._get_iterator()
        if self._iterator is None or self._iterator._failure is not None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def _get_iterator(self):
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        from torch.utils.data._worker_iterator import _MultiProcessingDataLoaderIter

        return _MultiProcessingDataLoaderIter(self)

    def state_dict(self) -> dict[str, int | list[int]]:
        """Where the last pass is, in types that torch.save and torch.load(weights_only=True) take.
        It counts batches that were handed out, whatever workers have read ahead. A dataset, or its
        iterator, with state_dict() and load_state_dict() is asked for its own state; datasets
        without indices that have none are read again up to the place. Without workers, the random
        numbers of this process are part of it."""
        if self._resume is not None:
            return self._resume
        return (self._progress or Progress(self, finished=True)).state_dict(self)

    def load_state_dict(self, state_dict) -> None:
        """Makes the next pass continue where state_dict() was taken: bit for bit, also what workers
        draw, given the same dataset, arguments and number of workers."""
        if not isinstance(state_dict, dict) or state_dict.get("version") != 1:
            raise ValueError("load_state_dict: not the state of a DataLoader")
        state = dict(state_dict)
        if len(state["generators"]) != len(generators_of(self)):
            raise ValueError(
                f"load_state_dict: the state has {len(state['generators'])} generators, this "
                f"loader has {len(generators_of(self))}"
            )
        if state["num_workers"] != self.num_workers:
            self._check_other_workers(state)
            state.update(workers=[], rng=None, num_workers=self.num_workers)
        if self._iterator is not None:
            self._iterator._shutdown_workers()
            self._iterator = None
        self._resume = state

    def _check_other_workers(self, state) -> None:
        if self._dataset_kind == _DatasetKind.Iterable and not state["finished"]:
            raise ValueError(
                "load_state_dict: a pass over an IterableDataset continues only with the number "
                f"of workers it began with ({state['num_workers']}), not {self.num_workers}"
            )
        warnings.warn(
            f"load_state_dict: the pass began with {state['num_workers']} workers and continues "
            f"with {self.num_workers}: the order is the same, random numbers drawn by samples "
            "are not",
            stacklevel=3,
        )

    @property
    def _skip_index(self) -> object:
        """What a fetcher of a dataset without indices is asked with."""
        return None if self.batch_size is None else [None] * self.batch_size

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        if self._dataset_kind != _DatasetKind.Iterable:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        whole, rest = divmod(length, self.batch_size)
        return whole if self.drop_last or rest == 0 else whole + 1
