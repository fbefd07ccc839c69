"""The DataLoader iterator that reads in worker processes. Batches are asked for in turn from each
worker and handed out in the order they were asked for, which makes a pass independent of timing;
workers hold `prefetch_factor` requests each."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import queue
import threading
import time
import weakref

import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import _utils
from torch.utils.data._iterators import _BaseDataLoaderIter, _DatasetKind
from torch.utils.data._utils.worker_group import WorkerGroup
from torch.utils.data._utils.worker_loop import End

__all__ = []


class _PinThread:
    """Copies batches into page-locked memory beside the program. `ready` can be polled."""

    def __init__(self, device_index) -> None:
        self.inbox, self.outbox = queue.SimpleQueue(), queue.SimpleQueue()
        self.ready = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.thread = threading.Thread(
            target=self._run, args=(device_index,), name="DataLoader pin", daemon=True
        )
        self.thread.start()

    def _run(self, device_index) -> None:
        if device_index is not None:
            torch.cuda.set_device(device_index)
        while (item := self.inbox.get()) is not None:
            key, data = item
            if not isinstance(data, ExceptionWrapper):
                try:
                    data = _utils.pin_memory.pin_memory(data)
                except Exception:
                    data = ExceptionWrapper(where="in pin memory thread")
            self.outbox.put((key, data))
            os.eventfd_write(self.ready, 1)
            del item, data

    def finished(self):
        """What has been pinned since the last call."""
        try:
            os.eventfd_read(self.ready)
        except BlockingIOError:
            return
        while not self.outbox.empty():
            yield self.outbox.get()

    def close(self) -> None:
        """Ends the thread."""
        self.inbox.put(None)
        self.thread.join()
        os.close(self.ready)


def _end(group, pin_thread) -> None:
    """Run when an iterator is gone or the interpreter ends."""
    owner = group.owner == os.getpid()
    group.close()
    if pin_thread is not None and owner:
        pin_thread.close()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """One pass, or with persistent workers one pass after the other."""

    def __init__(self, loader) -> None:
        self._failure = None
        self._epoch = 0
        self._timeout = loader.timeout
        self._in_order = getattr(loader, "in_order", True)
        self._persistent_workers = loader.persistent_workers
        self._prefetch = loader.prefetch_factor * loader.num_workers
        super().__init__(loader)
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self._group = WorkerGroup(
            context, [self._setup(loader, i) for i in range(loader.num_workers)]
        )
        self._pin_thread = None
        if self._pin_memory:
            self._pin_thread = _PinThread(torch.cuda.current_device())
        self._finalizer = weakref.finalize(self, _end, self._group, self._pin_thread)
        self._begin_tasks()

    @property
    def _workers(self) -> list[multiprocessing.Process]:
        """The worker processes that have not been ended."""
        return [member.process for member in self._group.members]

    @property
    def _pin_memory_thread(self) -> threading.Thread:
        """The thread that copies batches into page-locked memory."""
        return self._pin_thread.thread

    def _setup(self, loader, worker):
        resume = None
        if self._resume is not None and self._resume["workers"]:
            resume = self._resume["workers"][worker]
            if self._resume["finished"]:
                # Only the random numbers of workers that stay outlive a pass.
                resume = {**resume, "yielded": 0} if self._persistent_workers else None
        if resume is not None:
            self._progress.workers[worker].update(resume)
        return {
            "kind": self._dataset_kind,
            "dataset": self._dataset,
            "auto_collation": self._auto_collation,
            "collate_fn": self._collate_fn,
            "drop_last": self._drop_last,
            "base_seed": self._base_seed,
            "shared_seed": self._shared_seed,
            "init_fn": loader.worker_init_fn,
            "worker_id": worker,
            "num_workers": self._num_workers,
            "parent": os.getpid(),
            "resume": resume,
            "skip_index": getattr(loader, "_skip_index", None),
        }

    def _continue_order(self, resume) -> None:
        super()._continue_order(resume)
        # The first index is drawn while the generators are as they were, for it may draw the seed
        # of the whole order.
        first = list(itertools.islice(self._sampler_iter, 1))
        self._sampler_iter = itertools.chain(first, self._sampler_iter)

    def _reset(self, loader) -> None:
        """The next pass of persistent workers. Replies to requests of the last one may still come;
        they carry its number and are dropped."""
        before = self._progress.workers
        self._begin_pass(loader)
        for worker, known in enumerate(before):
            self._progress.knows(worker, {"rng": known["rng"]})
        self._epoch += 1
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        for worker in range(self._num_workers):
            self._group.send(worker, (self._epoch, None, self._shared_seed))
        self._begin_tasks()

    def _begin_tasks(self) -> None:
        first = self._progress.yielded
        self._next_task = first  # the next to ask for
        self._wanted = first  # the next to hand out
        self._tasks = {}  # asked for and not answered: task -> worker
        self._answers = {}  # answered and not handed out: task -> (data, worker, state)
        self._pinning = {}  # with the pin thread: task -> (worker, state)
        self._active = [True] * self._num_workers
        self._turn = first % self._num_workers
        if self._dataset_kind == _DatasetKind.Iterable:
            self._turn = self._progress.turn
        for _ in range(self._prefetch):
            self._ask()

    # ---- asking

    def _choose(self):
        """The worker whose turn it is. Out of order, of those with least to do."""
        order = [(self._turn + i) % self._num_workers for i in range(self._num_workers)]
        order = [worker for worker in order if self._active[worker]]
        if not order:
            return None
        chosen = order[0]
        if not self._in_order:
            load = [0] * self._num_workers
            for worker in self._tasks.values():
                load[worker] += 1
            chosen = min(order, key=load.__getitem__)
        self._turn = (chosen + 1) % self._num_workers
        return chosen

    def _ask(self) -> None:
        """Asks for one more batch, if there is one and a worker to read it."""
        if not any(self._active):
            return
        for index in self._sampler_iter:
            task = self._next_task
            self._next_task += 1
            if task in self._progress.beyond:
                continue  # handed out before the loader was saved
            worker = self._choose()
            self._tasks[task] = worker
            self._group.send(worker, (self._epoch, task, index))
            return

    # ---- receiving

    def _accept(self, worker, message) -> None:
        epoch, task, data, state = message
        if epoch != self._epoch:
            self._progress.knows(worker, state)
            return
        if isinstance(data, End):
            self._active[worker] = False
            for other in [t for t, owner in self._tasks.items() if owner == worker]:
                del self._tasks[other]
            self._ask()
            return
        if self._pin_thread is None:
            self._answers[task] = (data, worker, state)
        else:
            self._pinning[epoch, task] = (worker, state)
            self._pin_thread.inbox.put(((epoch, task), data))
        del self._tasks[task]

    def _accept_pinned(self) -> None:
        for key, data in self._pin_thread.finished():
            worker, state = self._pinning.pop(key, (None, None))
            if worker is not None:
                self._answers[key[1]] = (data, worker, state)

    def _receive(self, timeout) -> None:
        """Takes in what has come within `timeout` seconds."""
        pinned = self._pin_thread.ready if self._pin_thread is not None else None
        dead = None
        try:
            for worker, message in self._group.wait(timeout, pinned):
                if worker is None:
                    self._accept_pinned()
                elif message is not None:
                    self._accept(worker, message)
                elif self._active[worker] or self._persistent_workers:
                    dead = worker
        except Exception as error:
            # A batch that cannot be read leaves a request without a result.
            self._failure = f"DataLoader: {error}"
            self._shutdown(patience=0.2)
            raise
        if dead is not None:
            self._fail(self._group.describe_death(dead))

    def _fail(self, message):
        self._failure = message
        self._shutdown(patience=0.2)
        raise RuntimeError(message)

    def _shutdown(self, patience) -> None:
        if self._finalizer.detach() is not None:
            self._group.close(patience)
            _end(self._group, self._pin_thread)

    def _shutdown_workers(self) -> None:
        """Ends the workers."""
        self._finalizer()

    def _next_answer(self) -> object:
        """The key of the result to hand out now, None when it has not come, or StopIteration."""
        if not self._in_order:
            if self._answers:
                return next(iter(self._answers))
            if not self._tasks and not self._pinning:
                raise StopIteration
            return None
        while self._wanted not in self._answers:
            if self._wanted in self._tasks or (self._epoch, self._wanted) in self._pinning:
                return None
            if self._wanted >= self._next_task:
                raise StopIteration
            self._wanted += 1  # asked of a worker whose dataset had ended before it
        return self._wanted

    def _late(self) -> None:
        worker = self._tasks.get(self._wanted)
        late = sorted(set(self._tasks.values())) if worker is None else [worker]
        names = ", ".join(f"worker {i} (pid {self._group.members[i].pid})" for i in late)
        self._fail(f"DataLoader timed out after {self._timeout} seconds waiting for {names}")

    def _next_data(self):
        if self._failure is not None:
            raise RuntimeError(self._failure)
        if not self._finalizer.alive:
            raise StopIteration
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        self._receive(0)
        try:
            while (task := self._next_answer()) is None:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    self._late()
                self._receive(left)
        except StopIteration:
            if not self._persistent_workers:
                self._shutdown_workers()
            raise
        data, worker, state = self._answers.pop(task)
        self._hand_out(task, worker, state)
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return data

    def _hand_out(self, task, worker, state) -> None:
        self._wanted = max(self._wanted, task + 1) if self._in_order else self._wanted
        progress = self._progress
        if self._dataset_kind == _DatasetKind.Map:
            progress.took(task, worker, state)
        else:
            # Numbers of requests mean nothing to datasets that end when they like.
            progress.took(progress.yielded, worker, state)
            progress.turn = (worker + 1) % self._num_workers
        self._ask()
