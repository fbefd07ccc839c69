"""Iterators over a DataLoader: what all share (the order, the seed of a pass, where in it a loader
can be asked to continue) and the one that reads in this process."""

from __future__ import annotations

import copy
import itertools
import warnings

import torch
from torch.utils.data import _utils
from torch.utils.data._utils import rng
from torch.utils.data.datapipes.datapipe import IterDataPipe
from torch.utils.data.sampler import Sampler

__all__ = ["Progress", "dataset_state", "make_fetcher", "skip"]


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


# ---- datasets that know their place -------------------------------------------------------------


def _keeps_state(obj) -> bool:
    return callable(getattr(obj, "state_dict", None)) and callable(
        getattr(obj, "load_state_dict", None)
    )


def dataset_state(fetcher):
    """The state of a dataset, or of its iterator, with a state_dict() and load_state_dict(); None
    of others."""
    iterator = getattr(fetcher, "dataset_iter", None)
    if _keeps_state(iterator):
        return ("iterator", iterator.state_dict())
    if _keeps_state(fetcher.dataset):
        return ("dataset", fetcher.dataset.state_dict())
    return None


def make_fetcher(kind, dataset, auto_collation, collate_fn, drop_last, state=None):
    """A fetcher, where `state` is given on a dataset that continues from there."""
    owner, value = state or (None, None)
    if owner == "dataset":
        dataset.load_state_dict(value)
    fetcher = _DatasetKind.create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last)
    if owner == "iterator":
        fetcher.dataset_iter.load_state_dict(value)
    return fetcher


def skip(fetcher, count, index) -> None:
    """Reads batches and drops them."""
    for _ in range(count):
        try:
            fetcher.fetch(index)
        except StopIteration:
            return


# ---- where a pass is -----------------------------------------------------------------------------


class Progress:
    """What a loader remembers of its last pass, also when the iterator is gone. The order is not
    stored: the generators' states at its beginning are, from which it is drawn again."""

    def __init__(self, loader, finished=False) -> None:
        self.start = rng.capture()
        self.generators = [generator.get_state() for generator in generators_of(loader)]
        self.base_seed = None
        self.drew_seed = True
        self.yielded = 0
        self.beyond = set()  # tasks yielded before their turn
        self.turn = 0  # of datasets without indices: the worker whose batch comes next
        self.finished = finished
        self.fetcher = None  # of a pass in this process
        self.workers = [
            {"yielded": 0, "rng": None, "dataset": None} for _ in range(loader.num_workers)
        ]

    def took(self, task, worker=None, state=None) -> None:
        """A batch was handed out."""
        if task == self.yielded:
            self.yielded += 1
            while self.yielded in self.beyond:
                self.beyond.remove(self.yielded)
                self.yielded += 1
        else:
            self.beyond.add(task)
        if worker is not None:
            self.workers[worker]["yielded"] += 1
            self.knows(worker, state)

    def knows(self, worker, state) -> None:
        """What a worker says of itself; None: nothing new."""
        if state is not None:
            self.workers[worker].update(state)

    def state_dict(self, loader) -> dict[str, int | list[int]]:
        """In plain types."""
        workers = [
            {**worker, "rng": rng.portable(worker["rng"])} for worker in copy.copy(self.workers)
        ]
        own = loader.num_workers == 0
        dataset = dataset_state(self.fetcher) if self.fetcher is not None else None
        generators = self.generators
        if self.finished:
            generators = [generator.get_state() for generator in generators_of(loader)]
        return {
            "version": 1,
            "num_workers": loader.num_workers,
            "yielded": self.yielded,
            "beyond": sorted(self.beyond),
            "turn": self.turn,
            "finished": self.finished,
            "base_seed": self.base_seed,
            "drew_seed": self.drew_seed,
            "start": rng.portable(self.start),
            "generators": generators,
            "workers": workers,
            "rng": rng.portable(rng.capture()) if own else None,
            "dataset": copy.deepcopy(dataset),
        }


def generators_of(loader):
    """The generators that the order is drawn from, each once."""
    batches = getattr(loader, "batch_sampler", None)
    holders = (loader, getattr(loader, "sampler", None), batches, getattr(batches, "sampler", None))
    found = []
    for holder in holders:
        generator = getattr(holder, "generator", None)
        if isinstance(generator, torch.Generator) and all(generator is not g for g in found):
            found.append(generator)
    return found


def seed_pipe(dataset, shared_seed) -> None:
    """Gives the steps of a data pipe their seeds."""
    if shared_seed is not None:
        from torch.utils.data.graph_settings import apply_random_seed

        apply_random_seed(dataset, torch.Generator().manual_seed(shared_seed))


# ---- iterators -----------------------------------------------------------------------------------


class _BaseDataLoaderIter:
    """One pass over a DataLoader."""

    def __init__(self, loader) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._prefetch_factor = loader.prefetch_factor
        self._persistent_workers = loader.persistent_workers
        self._pin_memory_device = loader.pin_memory_device
        self._world_size, self._rank = 1, 0  # one process, as torch.distributed says
        # Page-locked memory is for copies to a GPU: without one batches stay where they are.
        self._pin_memory = loader.pin_memory and torch.cuda.is_available()
        if loader.pin_memory and not self._pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=3,
            )
        self._collate_fn = loader.collate_fn
        self._base_seed = None
        self._begin_pass(loader)

    def _begin_pass(self, loader) -> None:
        """Draws the seed and begins the order, or draws both again to continue within it."""
        # Not an attribute of what stands in for a loader in other libraries.
        resume, loader._resume = getattr(loader, "_resume", None), None
        self._resume = resume
        self._num_yielded = 0
        before = rng.capture() if resume else None
        unfinished = resume is not None and not resume["finished"]
        if resume is not None:
            for generator, state in zip(generators_of(loader), resume["generators"], strict=True):
                generator.set_state(state)
            if unfinished:
                rng.restore(resume["start"])
        self._progress = loader._progress = Progress(loader)
        self._sampler_iter = iter(self._index_sampler)
        self._shared_seed = None
        if isinstance(self._dataset, IterDataPipe):
            # All workers shuffle a pipe in the same way, before each takes its part.
            self._shared_seed = rng.draw_seed(loader.generator)
        self._draw_seed(loader, resume)
        if unfinished:
            self._continue_order(resume)
            if resume["rng"] is None:
                rng.restore(before)

    def _draw_seed(self, loader, resume) -> None:
        recorded = resume["base_seed"] if resume else None
        # Workers that stay keep their seed, so that only the first of their passes draws one.
        keep = loader.persistent_workers and (self._base_seed is not None or recorded is not None)
        drew = not keep or (resume is not None and resume["drew_seed"] and not resume["finished"])
        if drew:
            seed = rng.draw_seed(loader.generator)
            if self._shared_seed is not None and self._num_workers > 0:
                rng.draw_seed(loader.generator)  # the stream that programs with data pipes know
            if not keep:
                self._base_seed = seed
        if keep and self._base_seed is None:
            self._base_seed = recorded
        self._progress.base_seed = self._base_seed
        self._progress.drew_seed = drew

    def _continue_order(self, resume) -> None:
        """Passes over the indices of batches that were handed out before."""
        progress = self._progress
        progress.yielded = self._num_yielded = resume["yielded"]
        progress.beyond = set(resume["beyond"])
        progress.turn = resume["turn"]
        if self._dataset_kind == _DatasetKind.Map:
            for _ in itertools.islice(self._sampler_iter, resume["yielded"]):
                pass

    def _reset(self, loader, first_iter=False) -> None:
        """Begins another pass; iterators of other packages, which run their own workers, extend
        it."""
        self._begin_order(loader)
        if not first_iter and isinstance(self._dataset, IterDataPipe):
            self._shared_seed = rng.draw_seed(loader.generator)

    def _begin_order(self, loader) -> None:
        self._sampler_iter, self._num_yielded = iter(self._index_sampler), 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def __iter__(self):
        return self

    def _next_index(self) -> object:
        return next(self._sampler_iter)

    def _next_data(self):
        raise NotImplementedError(f"{type(self).__name__} does not define _next_data")

    def __next__(self):
        try:
            data = self._next_data()
        except StopIteration:
            self._progress.finished = True
            self._progress.fetcher = None
            raise
        self._num_yielded += 1
        promised = self._IterableDataset_len_called
        if (
            self._dataset_kind == _DatasetKind.Iterable
            and promised is not None
            and self._num_yielded > promised
        ):
            text = (
                f"Length of IterableDataset {self._dataset} was reported to be {promised} (when "
                f"accessing len(dataloader)), but {self._num_yielded} samples have been fetched. "
            )
            if self._num_workers > 0:
                text += (
                    "For multiprocessing data-loading, this could be caused by workers that do not"
                    " share the dataset out among them: see torch.utils.data.get_worker_info()."
                )
            warnings.warn(text, stacklevel=2)
        return data

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader) -> None:
        super().__init__(loader)
        resume = self._resume
        state = resume["dataset"] if resume else None
        seed_pipe(self._dataset, self._shared_seed)
        self._dataset_fetcher = make_fetcher(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
            state,
        )
        if resume is not None and not resume["finished"]:
            if self._dataset_kind == _DatasetKind.Iterable and state is None:
                skip(self._dataset_fetcher, resume["yielded"], loader._skip_index)
            # Samples are drawn in this process: it continues with the numbers it had.
            if resume["rng"] is not None:
                rng.restore(resume["rng"])
        self._progress.fetcher = self._dataset_fetcher

    def _next_data(self):
        data = self._dataset_fetcher.fetch(self._next_index())
        if self._pin_memory:
            data = _utils.pin_memory.pin_memory(data)
        self._progress.took(self._progress.yielded)
        return data
