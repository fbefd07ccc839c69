"""Backends on engines of other libraries: NCCL and MPI; and the wrapper around any backend that
checks first whether all ranks are about to do the same."""

from __future__ import annotations

import datetime
import importlib.util
import os
from typing import Any

import torch
from torch import _c10d
from torch._distributed import options as _o
from torch._distributed.group import Backend, Timeout, _call_by_name
from torch._distributed.options import OpType
from torch._distributed.work import Work

NCCL_TIMEOUT = datetime.timedelta(minutes=10)


def _point_at_nccl() -> None:
    """NCCL may lie in the vendor's Python package, which only Python knows where to find."""
    if "CRESSET_NCCL_LIBRARY" in os.environ:
        return
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        path = os.path.join(folder, "nccl", "lib", "libnccl.so.2")
        if os.path.exists(path):
            os.environ["CRESSET_NCCL_LIBRARY"] = path
            return


def plugin_error(name: str) -> str | None:
    """None where the backend can be used, else why not."""
    if name == "nccl":
        _point_at_nccl()
    return _c10d._plugin_error(name)


def _mapped(segment: dict[str, Any]) -> list[tuple[int, int]]:
    """The stretches of a segment that have memory, as address and size: there may be holes."""
    found: list[tuple[int, int]] = []
    for block in segment["blocks"]:
        start, size = block["address"], block["size"]
        if found and sum(found[-1]) == start:
            found[-1] = (found[-1][0], found[-1][1] + size)
        else:
            found.append((start, size))
    return found


class ProcessGroupNCCL(Backend):
    """NCCL: CUDA tensors between GPUs."""

    supports_coalescing = True

    class NCCLConfig:
        """Settings of a communicator; kept, and not passed on."""

        def __init__(self) -> None:
            self.blocking, self.cga_cluster_size = 1, 4
            self.min_ctas, self.max_ctas = 1, 32
            self.split_share, self.net_name = 0, ""

    class Options(Backend.Options):
        """How a group is made."""

        def __init__(self, is_high_priority_stream: bool = False) -> None:
            super().__init__("nccl", NCCL_TIMEOUT)
            self.is_high_priority_stream = is_high_priority_stream
            self.config = ProcessGroupNCCL.NCCLConfig()
            self.split_from: ProcessGroupNCCL | None = None
            self.split_color = 0

    def __init__(
        self,
        store: _c10d.Store,
        rank: int,
        size: int,
        options: ProcessGroupNCCL.Options | datetime.timedelta | None = None,
        *,
        timeout: datetime.timedelta = NCCL_TIMEOUT,
    ) -> None:
        _c10d._Backend.__init__(self)
        if isinstance(options, datetime.timedelta):
            timeout, options = options, None
        if options is None:
            options = ProcessGroupNCCL.Options()
            options._timeout = timeout
        self.options = options
        why = plugin_error("nccl")
        if why is not None:
            raise RuntimeError(f"Distributed package doesn't have NCCL built in: {why}")
        self._open(
            "nccl", store, rank, size, options._timeout, options.group_name,
            options.global_ranks_in_group, 1, [], "",
        )  # fmt: skip
        self._registered: dict[tuple[int, int], list[int]] = {}

    def register_mem_pool(self, pool: torch.cuda.MemPool, symm: bool = False) -> None:
        """Lets NCCL prepare the memory that a pool has by now, so that operations on it need no
        copies into NCCL's own. All ranks call it, since the first use of a group connects them."""
        if symm:
            raise NotImplementedError("register_mem_pool(symm=True) is not implemented for nccl")
        if pool.id in self._registered:
            raise RuntimeError(f"the pool {pool.id} is registered with this group already")
        done = self._registered[pool.id] = []
        for segment in pool.snapshot():
            for start, size in _mapped(segment):
                self._register_memory(segment["device"], start, size)
                done.append(start)

    def deregister_mem_pool(self, pool: torch.cuda.MemPool) -> None:
        """Undoes register_mem_pool; to be called before the pool goes away."""
        if pool.id not in self._registered:
            raise RuntimeError(f"the pool {pool.id} is not registered with this group")
        for start in self._registered.pop(pool.id):
            self._deregister_memory(start)


class ProcessGroupMPI(Backend):
    """MPI: CPU tensors between processes that mpirun started."""

    def __init__(
        self,
        store: _c10d.Store | None,
        rank: int,
        size: int,
        ranks: list[int],
        group_name: str,
        timeout: datetime.timedelta = _o.PG_TIMEOUT,
    ) -> None:
        _c10d._Backend.__init__(self)
        why = plugin_error("mpi")
        if why is not None:
            raise RuntimeError(f"Distributed package doesn't have MPI built in: {why}")
        self._open("mpi", store, rank, size, timeout, group_name, ranks, 1, [], "")

    @staticmethod
    def create(ranks: list[int]) -> ProcessGroupMPI | None:
        """The group of some ranks of MPI's world, of all where none are given; None outside."""
        world = ProcessGroupMPI(None, -1, 1, [], "")
        if not ranks:
            return world
        if world.rank() not in ranks:
            return None
        return ProcessGroupMPI(None, ranks.index(world.rank()), len(ranks), list(ranks), "")


class ProcessGroupWrapper(Backend):
    """A backend whose ranks agree on each collective before it begins. Where they do not, or where
    a rank does not come, all get an error that says so."""

    def __init__(
        self, backend: Any, store: _c10d.Store, rank: int, size: int, timeout: datetime.timedelta
    ) -> None:
        super().__init__(rank, size)
        self.wrapped_pg = backend
        self._check = _c10d._CrossCheck(store, rank, size)
        self._limit = timeout
        self._count = 0

    def name(self) -> str:
        """The name of the backend inside."""
        return self.wrapped_pg.name()

    def _begin(
        self,
        kind: OpType,
        inputs: list[torch.Tensor],
        outputs: list[torch.Tensor],
        opts: Any,
        **rest: Any,
    ) -> Work:
        if kind not in (OpType.SEND, OpType.RECV, OpType.RECVANYSOURCE):
            given = opts.timeout if opts.timeout >= datetime.timedelta(0) else self._limit
            reduction, _ = _o.kind_and_factor(rest.get("op", _o.RedOpType.SUM))
            self._count += 1
            self._check.check(
                kind, inputs, outputs, rest.get("root", 0), reduction, self._count,
                _o.milliseconds(given),
            )  # fmt: skip
        inner = self.wrapped_pg
        if isinstance(inner, Backend) and inner._own_rank is None:
            return inner._begin(kind, inputs, outputs, opts, **rest)
        return _call_by_name(inner, kind, inputs, outputs, opts, **rest)

    def monitored_barrier(self, timeout: Timeout = None, wait_all_ranks: bool = False) -> None:
        """The barrier of the backend inside."""
        self.wrapped_pg.monitored_barrier(timeout, wait_all_ranks)

    def abort(self) -> None:
        """Ends all work with errors."""
        self.wrapped_pg.abort()

    def shutdown(self) -> None:
        """Lets work end, then stops."""
        self.wrapped_pg.shutdown()

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """How long operations may take from now on."""
        self._limit = timeout
        self.wrapped_pg.set_timeout(timeout)

    def _get_sequence_number_for_group(self) -> int:
        return self.wrapped_pg._get_sequence_number_for_group()
