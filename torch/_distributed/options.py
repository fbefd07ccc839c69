"""Kinds of operations and reductions, and the options of each operation."""

from __future__ import annotations

import datetime
import enum
import os

import torch

NO_TIMEOUT = datetime.timedelta(0)
PG_TIMEOUT = datetime.timedelta(minutes=30)
# Stands for "the group's own timeout" in options.
UNSET_TIMEOUT = datetime.timedelta(milliseconds=-1)


class OpType(enum.IntEnum):
    """Operations by number, as records of work name them."""

    BROADCAST = 0
    ALLREDUCE = 1
    ALLREDUCE_COALESCED = 2
    REDUCE = 3
    ALLGATHER = 4
    _ALLGATHER_BASE = 5
    ALLGATHER_COALESCED = 6
    GATHER = 7
    SCATTER = 8
    REDUCE_SCATTER = 9
    ALLTOALL_BASE = 10
    ALLTOALL = 11
    SEND = 12
    RECV = 13
    RECVANYSOURCE = 14
    BARRIER = 15
    _REDUCE_SCATTER_BASE = 16
    COALESCED = 17
    _ALLREDUCE_SPARSE = 18
    REDUCE_SCATTER_TENSOR_COALESCED = 19
    UNKNOWN = 100


class DebugLevel(enum.IntEnum):
    """How much TORCH_DISTRIBUTED_DEBUG asks to be checked."""

    OFF = 0
    INFO = 1
    DETAIL = 2


class BuiltinCommHookType(enum.IntEnum):
    """Hooks on gradients that need no Python."""

    ALLREDUCE = 1
    FP16_COMPRESS = 2


class ErrorType(enum.IntEnum):
    """What went wrong with a group."""

    SUCCESS = 0
    TIMEOUT = 1
    COMM_ERROR = 2
    REMOTE_ERROR = 3


class WorkResult(enum.IntEnum):
    """How work ended."""

    SUCCESS = 0
    TIMEOUT = 1
    COMM_ERROR = 2
    UNKNOWN = 100


class RedOpType(enum.Enum):
    """How values of several ranks become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __index__(self) -> int:
        return self.value

    def __int__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        # Not a ReduceOp: that one compares itself with a kind, not the kind with it.
        return type(other) is RedOpType and self.value == other.value

    def __hash__(self) -> int:
        return self.value

    def __call__(self, *args: object, **kwargs: object) -> None:
        raise ValueError(f"{self} is a value, not a function")


class _ReduceOpMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, RedOpType)


class ReduceOp(metaclass=_ReduceOpMeta):
    """A reduction, with a factor where it has one."""

    RedOpType = RedOpType
    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM

    def __init__(self, op: RedOpType | ReduceOp) -> None:
        self.op = op.op if type(op) is ReduceOp else RedOpType(op)
        self._factor = op._factor if type(op) is ReduceOp else None

    @property
    def factor(self) -> float | torch.Tensor | None:
        """What values are multiplied with before they are added."""
        return self._factor

    def __eq__(self, other: object) -> bool:
        if type(other) is ReduceOp:
            return self.op is other.op
        return isinstance(other, RedOpType) and self.op is other

    def __hash__(self) -> int:
        return hash(self.op)

    def __int__(self) -> int:
        return self.op.value

    def __getstate__(self) -> tuple[object, ...]:
        factor = self._factor
        return (self.op.value,) if factor is None else (self.op.value, factor)

    def __setstate__(self, state: tuple[object, ...]) -> None:
        self.op = RedOpType(state[0])
        self._factor = state[1] if len(state) > 1 else None

    def __copy__(self) -> ReduceOp:
        return ReduceOp(self)

    def __deepcopy__(self, memo: dict) -> ReduceOp:
        return ReduceOp(self)


def make_premul_sum(factor: float | torch.Tensor | list[torch.Tensor]) -> ReduceOp:
    """The sum of values that were multiplied with `factor` first."""
    made = ReduceOp(RedOpType.PREMUL_SUM)
    made._factor = factor[0] if isinstance(factor, (list, tuple)) else factor
    return made


def kind_and_factor(op: RedOpType | ReduceOp) -> tuple[int, torch.Tensor | None]:
    """A reduction as C++ takes it."""
    if type(op) is not ReduceOp:
        return RedOpType(op).value, None
    factor = op._factor
    if factor is not None and not isinstance(factor, torch.Tensor):
        factor = torch.tensor(factor)
    return op.op.value, factor


class _Options:
    """What an operation can be told besides its tensors."""

    def __init__(self) -> None:
        self.timeout = UNSET_TIMEOUT
        self.asyncOp = True


class BroadcastOptions(_Options):
    """Options of broadcast."""

    def __init__(self) -> None:
        super().__init__()
        self.rootRank = self.rootTensor = 0


class AllreduceOptions(_Options):
    """Options of allreduce."""

    def __init__(self) -> None:
        super().__init__()
        self.reduceOp: RedOpType | ReduceOp = RedOpType.SUM
        self.sparseIndices: torch.Tensor | None = None


class AllreduceCoalescedOptions(AllreduceOptions):
    """Options of allreduce_coalesced."""


class ReduceOptions(AllreduceOptions):
    """Options of reduce."""

    def __init__(self) -> None:
        super().__init__()
        self.rootRank = self.rootTensor = 0


class AllgatherOptions(_Options):
    """Options of the gathering operations for all."""


class GatherOptions(_Options):
    """Options of gather."""

    def __init__(self) -> None:
        super().__init__()
        self.rootRank = 0


class ScatterOptions(GatherOptions):
    """Options of scatter."""


class ReduceScatterOptions(AllreduceOptions):
    """Options of reduce_scatter."""


class AllToAllOptions(_Options):
    """Options of alltoall."""


class BarrierOptions(_Options):
    """Options of barrier."""

    def __init__(self) -> None:
        super().__init__()
        self.device_ids: list[int] = []
        self.device: torch.device | None = None


class DistributedBackendOptions:
    """What the function that makes a backend gets with the extended interface."""

    def __init__(self) -> None:
        self.store = None
        self.group_rank = self.group_size = 0
        self.timeout = PG_TIMEOUT
        self.group_id = ""
        self.global_ranks_in_group: list[int] = []


def milliseconds(timeout: datetime.timedelta | None) -> int:
    """A timeout as C++ takes it: negative for the group's own."""
    if timeout is None or timeout is UNSET_TIMEOUT:
        return -1
    return timeout // datetime.timedelta(milliseconds=1)


_LEVELS = {level.name: level for level in DebugLevel}
_level = [DebugLevel.OFF]


def get_debug_level() -> DebugLevel:
    """How much is checked."""
    return _level[0]


def set_debug_level(level: DebugLevel) -> None:
    """Chooses how much is checked."""
    _level[0] = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """Takes the level from TORCH_DISTRIBUTED_DEBUG."""
    word = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if word not in _LEVELS:
        raise RuntimeError(
            f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.\n  got {word!r}"
        )
    _level[0] = _LEVELS[word]
