"""Backend and ProcessGroup. A backend moves data for one kind of device; a group has one for each
kind and passes every operation to the one for its tensors. Both have the same methods, so that a
program may be given either; a backend written in C++ gets each call as one description."""

from __future__ import annotations

import datetime
import enum
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import _C, _c10d
from torch._distributed import options as _o
from torch._distributed import reductions as _reductions
from torch._distributed.list_checks import ListChecks
from torch._distributed.list_checks import is_reduction as _is_reduction
from torch._distributed.list_checks import listed as _listed
from torch._distributed.options import OpType
from torch._distributed.work import CombinedWork, Work, create_work_from_future
from torch.futures import Future

Tensor = torch.Tensor
Timeout = datetime.timedelta | None


def _one_list(lists: Sequence[Tensor] | Sequence[Sequence[Tensor]], what: str) -> list[Tensor]:
    """The tensors of this rank: lists of lists are from the time of several devices per process."""
    lists = list(lists)
    if lists and not isinstance(lists[0], Tensor):
        if len(lists) != 1:
            raise ValueError(f"{what} requires a single-element output list, got {len(lists)}")
        return list(lists[0])
    return lists


def _options(cls: type, given: Any, timeout: Timeout = None, **fields: Any) -> Any:
    """Options: those given, or made of single arguments."""
    if given is not None and isinstance(given, cls):
        return given
    made = cls()
    if timeout is not None:
        made.timeout = timeout
    for name, value in fields.items():
        if value is not None:
            setattr(made, name, value)
    return made


# The names of operations as operators of torch.ops.c10d.
OPERATORS = {
    OpType.BROADCAST: "broadcast_",
    OpType.ALLREDUCE: "allreduce_",
    OpType.ALLREDUCE_COALESCED: "allreduce_coalesced_",
    OpType.REDUCE: "reduce_",
    OpType.ALLGATHER: "allgather_",
    OpType._ALLGATHER_BASE: "_allgather_base_",
    OpType.ALLGATHER_COALESCED: "allgather_into_tensor_coalesced_",
    OpType.GATHER: "gather_",
    OpType.SCATTER: "scatter_",
    OpType.REDUCE_SCATTER: "reduce_scatter_",
    OpType._REDUCE_SCATTER_BASE: "_reduce_scatter_base_",
    OpType.REDUCE_SCATTER_TENSOR_COALESCED: "reduce_scatter_tensor_coalesced_",
    OpType.ALLTOALL: "alltoall_",
    OpType.ALLTOALL_BASE: "alltoall_base_",
    OpType.SEND: "send",
    OpType.RECV: "recv_",
    OpType.RECVANYSOURCE: "recv_any_source_",
    OpType.BARRIER: "barrier",
}


# The names of operations in profiles.
_PROFILED = {
    OpType.BROADCAST: "broadcast",
    OpType.ALLREDUCE: "all_reduce",
    OpType.ALLREDUCE_COALESCED: "all_reduce",
    OpType.REDUCE: "reduce",
    OpType.ALLGATHER: "all_gather",
    OpType._ALLGATHER_BASE: "all_gather",
    OpType.ALLGATHER_COALESCED: "all_gather",
    OpType.GATHER: "gather",
    OpType.SCATTER: "scatter",
    OpType.REDUCE_SCATTER: "reduce_scatter",
    OpType._REDUCE_SCATTER_BASE: "reduce_scatter",
    OpType.REDUCE_SCATTER_TENSOR_COALESCED: "reduce_scatter",
    OpType.ALLTOALL: "all_to_all",
    OpType.ALLTOALL_BASE: "all_to_all",
    OpType.SEND: "send",
    OpType.RECV: "recv",
    OpType.RECVANYSOURCE: "recvAnySource",
    OpType.BARRIER: "barrier",
}


def _note(name: str, values: Sequence[Tensor], start: int, work: Work) -> None:
    """Leaves an operation to the profiler, which asks for its duration at the end."""
    from torch.autograd.profiler_util import apart

    # Engines get complex numbers as pairs.
    shapes = [[*t.shape, 2] if t.is_complex() else list(t.shape) for t in values]
    dtypes = [str(t.dtype) for t in values]
    apart.notes.append((name, shapes, dtypes, start, work._get_duration))


class _Observers(threading.local):
    """Functions of this thread that get the name of each operation of a group."""

    def __init__(self) -> None:
        self.functions: list[Callable[[str], None]] = []


observers = _Observers()


class _Collectives:
    """The operations, by their PyTorch names. `_begin` gets each as kind, inputs, outputs, options,
    and the rest by name."""

    def _begin(
        self, kind: OpType, inputs: list[Tensor], outputs: list[Tensor], opts: Any, **rest: Any
    ) -> Work:
        raise NotImplementedError

    def broadcast(
        self,
        tensors: Tensor | Sequence[Tensor],
        opts: _o.BroadcastOptions | int | None = None,
        timeout: Timeout = None,
        *,
        root: int | None = None,
    ) -> Work:
        """Sends the tensors of rank `root` to all."""
        root = opts if isinstance(opts, int) else root
        opts = _options(_o.BroadcastOptions, opts, timeout, rootRank=root)
        tensors = _listed(tensors)
        return self._begin(OpType.BROADCAST, [], tensors, opts, root=opts.rootRank)

    def allreduce(
        self,
        tensors: Tensor | Sequence[Tensor],
        opts: _o.AllreduceOptions | _o.ReduceOp | None = None,
        timeout: Timeout = None,
        *,
        op: _o.ReduceOp | None = None,
    ) -> Work:
        """Reduces the tensors over all ranks, in place; several also among themselves."""
        op = opts if _is_reduction(opts) else op
        opts = _options(_o.AllreduceOptions, opts, timeout, reduceOp=op)
        tensors = _listed(tensors)
        if tensors and tensors[0].layout == torch.sparse_coo:
            return _reductions.reduce_sparse(self, tensors, opts)
        if len(tensors) > 1:
            return _reductions.reduce_several(self, tensors, opts)
        return self._begin(OpType.ALLREDUCE, [], tensors, opts, op=opts.reduceOp)

    def allreduce_coalesced(
        self, tensors: Sequence[Tensor], opts: _o.AllreduceCoalescedOptions | None = None
    ) -> Work:
        """Reduces several tensors over all ranks, in place, as one operation."""
        opts = _options(_o.AllreduceOptions, opts)
        tensors = list(tensors)
        return self._begin(OpType.ALLREDUCE_COALESCED, [], tensors, opts, op=opts.reduceOp)

    def reduce(
        self,
        tensors: Tensor | Sequence[Tensor],
        opts: _o.ReduceOptions | int | None = None,
        op: _o.ReduceOp | None = None,
        timeout: Timeout = None,
        *,
        root: int | None = None,
    ) -> Work:
        """Reduces the tensors over all ranks; rank `root` gets the result."""
        root = opts if isinstance(opts, int) else root
        opts = _options(_o.ReduceOptions, opts, timeout, rootRank=root, reduceOp=op)
        return self._begin(
            OpType.REDUCE, [], _listed(tensors), opts, root=opts.rootRank, op=opts.reduceOp
        )

    def allgather(
        self,
        output_tensors: Sequence[Tensor] | Sequence[Sequence[Tensor]],
        input_tensors: Tensor | Sequence[Tensor],
        opts: _o.AllgatherOptions | None = None,
        timeout: Timeout = None,
    ) -> Work:
        """Every rank gets every rank's tensor. Of several tensors of a rank each output list gets
        all, those of one rank together."""
        if len(inputs := _listed(input_tensors)) > 1:
            return self._allgather_several(list(output_tensors), inputs, opts, timeout)
        outputs = _one_list(output_tensors, "allgather")
        opts = _options(_o.AllgatherOptions, opts, timeout)
        return self._begin(OpType.ALLGATHER, _listed(input_tensors), outputs, opts)

    def _allgather_several(
        self,
        lists: list[Sequence[Tensor]],
        inputs: list[Tensor],
        opts: _o.AllgatherOptions | None,
        timeout: Timeout,
    ) -> Work:
        count = len(inputs)
        wrong = [len(one) for one in lists if len(one) != count * self.size()]
        if len(lists) != count or wrong:
            raise ValueError(
                f"allgather of {count} tensors requires {count} output lists of "
                f"{count * self.size()} tensors, got lists of {[len(one) for one in lists]}"
            )
        for i, tensor in enumerate(inputs):
            self.allgather([lists[0][i::count]], [tensor], opts, timeout).wait()
        for other in lists[1:]:
            for target, value in zip(other, lists[0], strict=True):
                target.copy_(value)
        future = Future()
        future.set_result([list(one) for one in lists])
        return create_work_from_future(future)

    def _allgather_base(
        self, output: Tensor, input: Tensor, opts: _o.AllgatherOptions | None = None
    ) -> Work:
        """Every rank gets every rank's tensor, one after the other in one tensor."""
        opts = _options(_o.AllgatherOptions, opts)
        return self._begin(OpType._ALLGATHER_BASE, [input], [output], opts)

    all_gather_single = _allgather_base

    def allgather_into_tensor_coalesced(
        self,
        outputs: Sequence[Tensor],
        inputs: Sequence[Tensor],
        opts: _o.AllgatherOptions | None = None,
    ) -> Work:
        """Several calls of all_gather_single as one."""
        opts = _options(_o.AllgatherOptions, opts)
        return self._begin(OpType.ALLGATHER_COALESCED, list(inputs), list(outputs), opts)

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def allgather_coalesced(
        self,
        output_lists: Sequence[Sequence[Tensor]],
        input_list: Sequence[Tensor],
        opts: _o.AllgatherOptions | None = None,
    ) -> Work:
        """Every rank gets every rank's list of tensors."""
        opts = _options(_o.AllgatherOptions, opts)
        inputs, lists = list(input_list), [list(one) for one in output_lists]
        if len(lists) != self.size() or any(len(one) != len(inputs) for one in lists):
            raise ValueError(
                f"allgather_coalesced: output lists must be {self.size()} lists of {len(inputs)} "
                f"tensors, got lists of {[len(one) for one in lists]}"
            )
        parts = [
            self.allgather([[one[i] for one in lists]], [t], opts) for i, t in enumerate(inputs)
        ]
        return CombinedWork(parts)

    def gather(
        self,
        output_tensors: Sequence[Tensor] | Sequence[Sequence[Tensor]],
        input_tensors: Tensor | Sequence[Tensor],
        opts: _o.GatherOptions | int | None = None,
        timeout: Timeout = None,
        *,
        root: int | None = None,
    ) -> Work:
        """Rank `root` gets every rank's tensor."""
        root = opts if isinstance(opts, int) else root
        opts = _options(_o.GatherOptions, opts, timeout, rootRank=root)
        outputs = _one_list(output_tensors, "gather")
        inputs = _listed(input_tensors)
        return self._begin(OpType.GATHER, inputs, outputs, opts, root=opts.rootRank)

    def scatter(
        self,
        output_tensors: Tensor | Sequence[Tensor],
        input_tensors: Sequence[Tensor] | Sequence[Sequence[Tensor]],
        opts: _o.ScatterOptions | int | None = None,
        timeout: Timeout = None,
        *,
        root: int | None = None,
    ) -> Work:
        """Rank `root` sends one tensor to each rank."""
        root = opts if isinstance(opts, int) else root
        opts = _options(_o.ScatterOptions, opts, timeout, rootRank=root)
        inputs = _one_list(input_tensors, "scatter")
        outputs = _listed(output_tensors)
        return self._begin(OpType.SCATTER, inputs, outputs, opts, root=opts.rootRank)

    def reduce_scatter(
        self,
        output_tensors: Tensor | Sequence[Tensor],
        input_tensors: Sequence[Tensor] | Sequence[Sequence[Tensor]],
        opts: _o.ReduceScatterOptions | _o.ReduceOp | None = None,
        timeout: Timeout = None,
        *,
        op: _o.ReduceOp | None = None,
    ) -> Work:
        """Reduces one tensor per rank over all ranks; each rank gets its own."""
        op = opts if _is_reduction(opts) else op
        opts = _options(_o.ReduceScatterOptions, opts, timeout, reduceOp=op)
        inputs = _one_list(input_tensors, "reduce_scatter")
        outputs = _listed(output_tensors)
        return self._begin(OpType.REDUCE_SCATTER, inputs, outputs, opts, op=opts.reduceOp)

    def _reduce_scatter_base(
        self,
        outputTensor: Tensor,
        inputTensor: Tensor,
        opts: _o.ReduceScatterOptions | None = None,
    ) -> Work:
        """Reduces a tensor over all ranks; each rank gets its part of it."""
        opts = _options(_o.ReduceScatterOptions, opts)
        return self._begin(
            OpType._REDUCE_SCATTER_BASE, [inputTensor], [outputTensor], opts, op=opts.reduceOp
        )

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_tensor_coalesced(
        self,
        outputs: Sequence[Tensor],
        inputs: Sequence[Tensor],
        opts: _o.ReduceScatterOptions | None = None,
    ) -> Work:
        """Several calls of reduce_scatter_single as one."""
        opts = _options(_o.ReduceScatterOptions, opts)
        kind = OpType.REDUCE_SCATTER_TENSOR_COALESCED
        return self._begin(kind, list(inputs), list(outputs), opts, op=opts.reduceOp)

    def alltoall(
        self,
        output_tensors: Sequence[Tensor],
        input_tensors: Sequence[Tensor],
        opts: _o.AllToAllOptions | None = None,
    ) -> Work:
        """Every rank sends one tensor to each rank."""
        opts = _options(_o.AllToAllOptions, opts)
        return self._begin(OpType.ALLTOALL, list(input_tensors), list(output_tensors), opts)

    def alltoall_base(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int] = (),
        input_split_sizes: Sequence[int] = (),
        opts: _o.AllToAllOptions | None = None,
        timeout: Timeout = None,
    ) -> Work:
        """Every rank sends a part of its tensor to each rank."""
        opts = _options(_o.AllToAllOptions, opts, timeout)
        splits = (list(input_split_sizes or ()), list(output_split_sizes or ()))
        return self._begin(OpType.ALLTOALL_BASE, [input], [output], opts, splits=splits)

    all_to_all_single = alltoall_base

    def send(self, tensors: Sequence[Tensor], dstRank: int, tag: int = 0) -> Work:
        """Sends a tensor to a rank."""
        return self._begin(OpType.SEND, _listed(tensors), [], _o._Options(), root=dstRank, tag=tag)

    def recv(self, tensors: Sequence[Tensor], srcRank: int, tag: int = 0) -> Work:
        """Receives a tensor from a rank."""
        return self._begin(OpType.RECV, [], _listed(tensors), _o._Options(), root=srcRank, tag=tag)

    def recv_anysource(self, tensors: Sequence[Tensor], tag: int = 0) -> Work:
        """Receives a tensor from whoever sends first."""
        return self._begin(OpType.RECVANYSOURCE, [], _listed(tensors), _o._Options(), tag=tag)

    def barrier(self, opts: _o.BarrierOptions | None = None, timeout: Timeout = None) -> Work:
        """Waits until every rank has come here."""
        opts = _options(_o.BarrierOptions, opts, timeout)
        return self._begin(OpType.BARRIER, [], [], opts)


class Backend(_Collectives, _c10d._Backend):
    """How the ranks of a group reach each other. One written in Python defines the operations it
    has; those it lacks raise."""

    class Options:
        """How a backend is made."""

        def __init__(self, backend: str, timeout: datetime.timedelta = _o.PG_TIMEOUT) -> None:
            self.backend, self._timeout = backend, timeout
            self.global_ranks_in_group: list[int] = []
            self.group_name = ""

        @property
        def _timeout(self) -> datetime.timedelta:
            return self._limit

        @_timeout.setter
        def _timeout(self, value: datetime.timedelta | float) -> None:
            is_number = isinstance(value, int | float)
            self._limit = datetime.timedelta(seconds=value) if is_number else value

    supports_splitting = False
    supports_coalescing = False
    supports_time_estimate = False
    supports_shrinking = False
    _own_rank: int | None = None

    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        self._own_rank, self._own_size = rank, size
        self._coalesced: list[Work] | None = None

    def rank(self) -> int:
        """This process's number in the group."""
        return self._own_rank if self._own_rank is not None else super().rank()

    def size(self) -> int:
        """How many processes the group has."""
        return self._own_size if self._own_rank is not None else super().size()

    def getBackendName(self) -> str:
        """The backend's name."""
        return self.name()

    def _begin(
        self,
        kind: OpType,
        inputs: list[Tensor],
        outputs: list[Tensor],
        opts: Any,
        *,
        root: int = 0,
        tag: int = 0,
        op: _o.ReduceOp = _o.RedOpType.SUM,
        splits: tuple[list[int], list[int]] = ((), ()),
    ) -> Work:
        if self._own_rank is not None:
            raise RuntimeError(
                f"Backend {type(self).__name__} does not support {kind.name.lower()}"
            )
        reduction, factor = _o.kind_and_factor(op)
        timeout = _o.milliseconds(opts.timeout)
        recorded = _C._profiler_enabled()
        start = _C._profiler_clock() if recorded else 0
        work = self._run(
            kind, inputs, outputs, root, tag, reduction, factor, timeout, opts.asyncOp, *splits
        )
        if recorded:
            values = inputs or (outputs if kind != OpType.SCATTER else [])
            _note(f"{self.name()}:{_PROFILED[kind]}", values, start, work)
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

    _coalesced = None

    def _start_coalescing(self) -> None:
        if self._own_rank is None:
            self._begin_batch()
        self._coalesced = []

    def _end_coalescing(self) -> Work:
        parts, self._coalesced = self._coalesced or [], None
        if self._own_rank is None:
            self._end_batch()
        return CombinedWork(parts)

    def monitored_barrier(self, timeout: Timeout = None, wait_all_ranks: bool = False) -> None:
        """A barrier that says who did not come."""
        self._monitored_barrier(_o.milliseconds(timeout), wait_all_ranks)

    def _set_default_timeout(self, timeout: datetime.timedelta) -> None:
        self.set_timeout(timeout)
        options = getattr(self, "options", None)
        if options is not None:
            options._timeout = timeout

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence() if self._own_rank is None else 0

    def _set_sequence_number_for_group(self) -> None:
        """Numbers begin at the same value everywhere by themselves."""

    def eager_connect_single_device(self, device: torch.device | None = None) -> None:
        """Connections are made when the backend is."""


class ForeignBackend(Backend):
    """A backend that a C++ extension brought (torch/csrc/distributed/c10d/Backend.hpp)."""

    def __init__(self) -> None:
        raise TypeError("a backend of an extension is made by a function of the extension")


class ProcessGroupGloo(ListChecks, Backend):
    """Gloo: CPU tensors over TCP."""

    class _Options(Backend.Options):
        def __init__(self, timeout: datetime.timedelta = _o.PG_TIMEOUT) -> None:
            super().__init__("gloo", timeout)
            self._devices: list[ProcessGroupGloo.Device] = []
            self._threads = 2

    Options = _Options

    class Device:
        """A network interface."""

        def __init__(self, hostname: str = "", interface: str = "") -> None:
            self.hostname, self.interface = hostname, interface

    @staticmethod
    def create_device(
        hostname: str = "", interface: str = "", lazy_init: bool | None = None
    ) -> ProcessGroupGloo.Device:
        """A device by the name of the host or of the interface."""
        return ProcessGroupGloo.Device(hostname, interface)

    @staticmethod
    def create_default_device(lazy_init: bool | None = None) -> ProcessGroupGloo.Device:
        """The device of the host's own name."""
        return ProcessGroupGloo.Device()

    def __init__(
        self,
        store: _c10d.Store,
        rank: int,
        size: int,
        options: ProcessGroupGloo._Options | datetime.timedelta | None = None,
        *,
        timeout: datetime.timedelta = _o.PG_TIMEOUT,
    ) -> None:
        _c10d._Backend.__init__(self)
        if isinstance(options, datetime.timedelta):
            timeout, options = options, None
        self.options = options = options or ProcessGroupGloo._Options(timeout)
        devices = options._devices
        self._open(
            "gloo",
            store,
            rank,
            size,
            options._timeout,
            options.group_name,
            options.global_ranks_in_group,
            options._threads,
            [device.interface for device in devices if device.interface],
            devices[0].hostname if devices else "",
        )


class _BuiltIn(Backend):
    """A backend without a store."""

    _name = ""

    def __init__(
        self, rank: int, size: int, timeout: datetime.timedelta = _o.PG_TIMEOUT, name: str = ""
    ) -> None:
        _c10d._Backend.__init__(self)
        self._open(self._name, None, rank, size, timeout, name, [], 1, [], "")


class FakeProcessGroup(_BuiltIn):
    """Does nothing: for planning, and for tests of what surrounds communication."""

    _name = "fake"
    supports_coalescing = True

    class Options(Backend.Options):
        """Options of the fake backend."""

        def __init__(self) -> None:
            super().__init__("fake")
            self.fake_option = 0
            self.error_on_collective = False

    def __init__(
        self,
        rank: int,
        size: int,
        options: FakeProcessGroup.Options | None = None,
        timeout: datetime.timedelta = _o.PG_TIMEOUT,
    ) -> None:
        self.options = options or FakeProcessGroup.Options()
        super().__init__(rank, size, timeout, self.options.group_name)

    @staticmethod
    def _create_internal(
        rank: int, size: int, options: FakeProcessGroup.Options | None = None
    ) -> FakeProcessGroup:
        return FakeProcessGroup(rank, size, options)


class ThreadedProcessGroup(_BuiltIn):
    """Ranks are threads of one process; `name` tells groups apart."""

    _name = "threaded"


class ProcessGroup(_Collectives):
    """Processes that work together, with a backend for each kind of device."""

    class BackendType(enum.IntEnum):
        """Backends by number."""

        UNDEFINED = 0
        GLOO = 1
        NCCL = 2
        UCC = 3
        MPI = 4
        XCCL = 5
        CUSTOM = 6

    UNDEFINED, GLOO, NCCL = BackendType.UNDEFINED, BackendType.GLOO, BackendType.NCCL
    UCC, MPI, XCCL = BackendType.UCC, BackendType.MPI, BackendType.XCCL
    CUSTOM = BackendType.CUSTOM
    Options = Backend.Options

    def __init__(self, *args: Any) -> None:
        if len(args) == 2:
            args = (None, *args)
        if len(args) != 3:
            raise TypeError("ProcessGroup(rank, size) or ProcessGroup(store, rank, size)")
        self._store, self._rank, self._size = args
        self._backends: dict[str, Backend] = {}
        self._types: dict[str, ProcessGroup.BackendType] = {}
        self._default_type = ProcessGroup.BackendType.UNDEFINED
        self._group_name = self._group_desc = ""
        self.bound_device_id: torch.device | None = None

    def rank(self) -> int:
        """This process's number in the group."""
        return self._rank

    def size(self) -> int:
        """How many processes the group has."""
        return self._size

    def name(self) -> str:
        """The name of the default backend."""
        return self._get_backend_name()

    def get_group_store(self) -> _c10d.Store:
        """The store that the members share."""
        return self._store

    @property
    def group_name(self) -> str:
        """The name of the group, the same in all its processes."""
        return self._group_name

    @property
    def group_desc(self) -> str:
        """What the group is for."""
        return self._group_desc

    def _set_group_name(self, name: str) -> None:
        self._group_name = name

    def _set_group_desc(self, text: str) -> None:
        self._group_desc = text

    # ---- backends
    def _register_backend(
        self, device: torch.device, backend_type: BackendType, backend: Backend | None = None
    ) -> None:
        kind = torch.device(device).type
        self._types[kind] = backend_type
        if backend is not None:
            self._backends[kind] = backend

    def _set_default_backend(self, backend_type: BackendType) -> None:
        self._default_type = backend_type

    def _get_backend(self, device: torch.device | str) -> Backend:
        kind = device if isinstance(device, str) else device.type
        found = self._backends.get(kind)
        if found is None:
            raise RuntimeError(
                f"No backend type associated with device type {kind}; the group has backends for "
                f"{', '.join(self._backends) or 'none'}"
            )
        return found

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device(kind) for kind in self._backends]

    def _any_backend(self) -> Backend:
        for kind, backend in self._backends.items():
            if self._types[kind] == self._default_type:
                return backend
        if not self._backends:
            raise RuntimeError("Could not find the default backend: the process group has none")
        return next(iter(self._backends.values()))

    def _get_backend_name(self) -> str:
        backend = self._any_backend()
        return backend.name() if hasattr(backend, "name") else type(backend).__name__

    def _backend_id(self, backend_type: BackendType) -> int:
        return id(self._any_backend())

    def _id(self) -> int:
        return id(self)

    def _begin(
        self, kind: OpType, inputs: list[Tensor], outputs: list[Tensor], opts: Any, **rest: Any
    ) -> Work:
        for see in observers.functions:
            see(OPERATORS[kind])
        tensors = inputs or outputs
        alias = _ALIASES.get(kind)
        if alias and getattr(type(self), alias) is not getattr(ProcessGroup, alias):
            return _call_by_name(self, kind, inputs, outputs, opts, **rest, name=alias)
        if tensors:
            backend = self._get_backend(tensors[0].device)
        elif getattr(opts, "device", None) is not None:
            backend = self._get_backend(opts.device)
        else:
            backend = self._backends.get("cpu") or self._any_backend()
        if isinstance(backend, Backend) and backend._own_rank is None:
            return backend._begin(kind, inputs, outputs, opts, **rest)
        return _call_by_name(backend, kind, inputs, outputs, opts, **rest)

    # ---- what concerns all backends
    def monitored_barrier(self, timeout: Timeout = None, wait_all_ranks: bool = False) -> None:
        """A barrier that says who did not come."""
        self._get_backend("cpu").monitored_barrier(timeout, wait_all_ranks)

    def _start_coalescing(self, device: torch.device) -> None:
        self._get_backend(device)._start_coalescing()

    def _end_coalescing(self, device: torch.device) -> Work:
        return self._get_backend(device)._end_coalescing()

    def _each(self, do: Callable[[Backend], None]) -> None:
        for backend in {id(one): one for one in self._backends.values()}.values():
            do(backend)

    def abort(self) -> None:
        """Ends all work with errors."""
        self._each(lambda backend: backend.abort())

    def shutdown(self) -> None:
        """Lets work end, then stops."""
        self._each(lambda backend: backend.shutdown())

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """How long operations may take from now on."""
        self._each(lambda backend: backend.set_timeout(timeout))

    def _get_sequence_number_for_group(self) -> int:
        return self._any_backend()._get_sequence_number_for_group()

    def _set_sequence_number_for_group(self) -> None:
        """Numbers begin at the same value everywhere by themselves."""

    def _wait_for_pending_works(self) -> None:
        """Every caller waits for its own work."""

    def _has_hooks(self) -> bool:
        return False

    def boxed(self) -> ProcessGroup:
        """The group as operators carry it."""
        return self

    @staticmethod
    def unbox(group: ProcessGroup) -> ProcessGroup:
        """The group that boxed() gave."""
        return group


_FIRST_ARGUMENTS: dict[OpType, tuple[str, Callable[[list, list], tuple]]] = {
    OpType.BROADCAST: ("broadcast", lambda i, o: (o,)),
    OpType.ALLREDUCE: ("allreduce", lambda i, o: (o,)),
    OpType.ALLREDUCE_COALESCED: ("allreduce_coalesced", lambda i, o: (o,)),
    OpType.REDUCE: ("reduce", lambda i, o: (o,)),
    OpType.ALLGATHER: ("allgather", lambda i, o: ([o], i)),
    OpType._ALLGATHER_BASE: ("_allgather_base", lambda i, o: (o[0], i[0])),
    OpType.ALLGATHER_COALESCED: ("allgather_into_tensor_coalesced", lambda i, o: (o, i)),
    OpType.GATHER: ("gather", lambda i, o: ([o] if o else [], i)),
    OpType.SCATTER: ("scatter", lambda i, o: (o, [i] if i else [])),
    OpType.REDUCE_SCATTER: ("reduce_scatter", lambda i, o: (o, [i])),
    OpType._REDUCE_SCATTER_BASE: ("_reduce_scatter_base", lambda i, o: (o[0], i[0])),
    OpType.REDUCE_SCATTER_TENSOR_COALESCED: (
        "reduce_scatter_tensor_coalesced",
        lambda i, o: (o, i),
    ),
    OpType.ALLTOALL: ("alltoall", lambda i, o: (o, i)),
    OpType.BARRIER: ("barrier", lambda i, o: ()),
}


# Second names of operations: a group written in Python may define either.
_ALIASES = {
    OpType._ALLGATHER_BASE: "all_gather_single",
    OpType.ALLGATHER_COALESCED: "all_gather_single_coalesced",
    OpType._REDUCE_SCATTER_BASE: "reduce_scatter_single",
    OpType.ALLTOALL_BASE: "all_to_all_single",
}


def _call_by_name(
    backend: Any,
    kind: OpType,
    inputs: list[Tensor],
    outputs: list[Tensor],
    opts: Any,
    *,
    root: int = 0,
    tag: int = 0,
    op: _o.ReduceOp = _o.RedOpType.SUM,
    splits: tuple[list[int], list[int]] = ((), ()),
    name: str = "",
) -> Work:
    """The operation as a call of the method of a backend that is written in Python."""
    if kind == OpType.SEND:
        return backend.send(inputs, root, tag)
    if kind == OpType.RECV:
        return backend.recv(outputs, root, tag)
    if kind == OpType.RECVANYSOURCE:
        return backend.recv_anysource(outputs, tag)
    if kind == OpType.ALLTOALL_BASE:
        call = getattr(backend, name or "alltoall_base")
        return call(outputs[0], inputs[0], splits[1], splits[0], opts)
    usual, arguments = _FIRST_ARGUMENTS[kind]
    return getattr(backend, name or usual)(*arguments(inputs, outputs), opts)


# ---- groups by name ------------------------------------------------------------------------------
class _Names(threading.local):
    """Groups by name of one thread."""

    def __init__(self) -> None:
        self.groups: dict[str, ProcessGroup] = {}


_by_name: dict[str, ProcessGroup] = {}
_of_thread = _Names()
_isolated = [False]


def set_thread_isolation_mode(enable: bool) -> None:
    """Whether each thread has groups of its own, for ranks that are threads."""
    _isolated[0] = bool(enable)


def _names() -> dict[str, ProcessGroup]:
    return _of_thread.groups if _isolated[0] else _by_name


def register_process_group(name: str, group: ProcessGroup) -> None:
    """Makes the group known to operators that name it."""
    _names()[name] = group


def resolve_process_group(name: str | ProcessGroup) -> ProcessGroup:
    """The group of that name."""
    if not isinstance(name, str):
        return name
    found = _names().get(name)
    if found is None:
        raise RuntimeError(f"Could not resolve the process group registered under the name {name}")
    return found


def unregister_process_group(name: str) -> None:
    """Forgets the group of that name."""
    _names().pop(name, None)


def unregister_all_process_groups() -> None:
    """Forgets all groups."""
    _names().clear()
