"""What runs in a worker process: it reads batches on request, with seeds of its own, and returns
each with what a later process would need to continue after it."""

import contextlib
import os
import select
import signal
import sys
import threading

import torch
from torch import _C
from torch._utils import ExceptionWrapper
from torch.utils.data._iterators import _DatasetKind, dataset_state, make_fetcher, seed_pipe, skip
from torch.utils.data._utils import rng, worker
from torch.utils.data._utils.transport import Channel, Closed

__all__ = ["End", "run"]


class End:
    """A worker's answer when its dataset has ended."""


class _Reader:
    """The dataset of a worker, its place in an epoch and what of both has to be told."""

    def __init__(self, setup) -> None:
        self.setup = setup
        self.fetcher = None
        self.ended = False
        self.told = None  # the random state that the loader knows

    def start(self, shared_seed, resume=None) -> None:
        """A new epoch, or the rest of one that another process began."""
        setup = self.setup
        self.ended = False
        # Python resets what a dataset's iterator holds only when the old one is gone.
        self.fetcher = None
        state = resume and resume.get("dataset")
        seed_pipe(setup["dataset"], shared_seed)
        self.fetcher = make_fetcher(
            setup["kind"],
            setup["dataset"],
            setup["auto_collation"],
            setup["collate_fn"],
            setup["drop_last"],
            state,
        )
        if resume is None:
            return
        if setup["kind"] == _DatasetKind.Iterable and state is None:
            skip(self.fetcher, resume["yielded"], setup["skip_index"])
        if resume["rng"] is not None:
            rng.restore(resume["rng"])
            self.told = resume["rng"]

    def fetch(self, index):
        """A batch, End or the exception that the dataset raised."""
        try:
            return self.fetcher.fetch(index)
        except StopIteration:
            if self.setup["kind"] == _DatasetKind.Map:
                return ExceptionWrapper(where=self.where())
            self.ended = True
            # The iterator is freed here: it may hold files open until then.
            self.fetcher = None
            return End()
        except Exception:
            return ExceptionWrapper(where=self.where())

    def where(self) -> str:
        """Names this process in messages."""
        return f"in DataLoader worker process {self.setup['worker_id']}"

    def state(self):
        """What a loader needs to continue after the batch just read: None where that is what it
        knows already."""
        now = rng.capture()
        dataset = dataset_state(self.fetcher)
        if dataset is None and rng.same(now, self.told):
            return None
        self.told = now
        return {"rng": now, "dataset": dataset}


def _prepare(setup) -> None:
    """Seeds, the worker's identity and the user's function."""
    torch.set_num_threads(1)
    seed = setup["base_seed"] + setup["worker_id"]
    rng.seed_all(setup["base_seed"], setup["worker_id"])
    worker._worker_info = worker.WorkerInfo(
        id=setup["worker_id"],
        num_workers=setup["num_workers"],
        seed=seed,
        dataset=setup["dataset"],
        worker_method="multiprocessing",
    )
    if setup["shared_seed"] is not None:
        from torch.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
        from torch.utils.data.graph_settings import apply_sharding

        group = SHARDING_PRIORITIES.MULTIPROCESSING
        apply_sharding(setup["dataset"], setup["num_workers"], setup["worker_id"], group)
    if setup["init_fn"] is not None:
        setup["init_fn"](setup["worker_id"])


def _answer(channel, epoch, task, data, state, where) -> None:
    """Sends a batch; what cannot be pickled is returned by the reason."""
    try:
        channel.send((epoch, task, data, state))
    except Closed:
        raise
    except Exception:
        if isinstance(data, ExceptionWrapper):
            # A class that this process alone knows: its text is kept.
            data.exc_type = RuntimeError
        else:
            data = ExceptionWrapper(where=where)
        channel.send((epoch, task, data, None))


def _attempt(action, where):
    """None, or the exception that the action raised."""
    try:
        action()
    except Exception:
        return ExceptionWrapper(where=where)
    return None


def _serve(channel, reader, failure) -> None:
    """Answers requests until one says stop: (epoch, task, indices), or without a task a new
    epoch."""
    while (request := channel.receive()) is not None:
        epoch, task, indices = request
        if task is None:
            # Without a task the third member is the seed of a data pipe.
            failure = failure or _attempt(lambda: reader.start(request[2]), reader.where())
            continue
        if reader.ended:
            continue
        data = failure or reader.fetch(indices)
        state = None
        if not isinstance(data, ExceptionWrapper | End):
            state = reader.state()
        _answer(channel, epoch, task, data, state, reader.where())
        # Nothing of a batch is kept while the next is waited for.
        del data, state, request, indices


def _leave_when_closed(sock) -> None:
    poll = select.poll()
    poll.register(sock, 0)  # only the end of the connection
    poll.poll()
    os._exit(1)


def _on_interrupt(sock) -> None:
    """Ctrl-C goes to the whole group. The loader's process decides what becomes of the pass; should
    it end, nobody waits for the sample that is being read."""
    threading.Thread(target=_leave_when_closed, args=(sock,), daemon=True).start()


def _begin(setup, reader) -> None:
    _prepare(setup)
    reader.start(setup["shared_seed"], setup["resume"])


def run(setup, sock) -> None:
    """The main function of a worker."""
    _C._die_with(setup["parent"], signal.SIGKILL)
    signal.signal(signal.SIGINT, lambda number, frame: _on_interrupt(sock))
    channel = Channel(sock)
    reader = _Reader(setup)
    failure = _attempt(lambda: _begin(setup, reader), reader.where())
    with contextlib.suppress(Closed):
        _serve(channel, reader, failure)
    channel.close()
    sys.stdout.flush()
    sys.stderr.flush()
