"""Work: an operation that may still be running, and the future of its result."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence

import torch
from torch import _c10d
from torch._distributed.options import NO_TIMEOUT, OpType, WorkResult
from torch.futures import Future


class Work(_c10d._Work):
    """An operation that may still be running. A class that derives from it and is not made by a
    backend defines wait, and get_future where it is asked for."""

    def get_future(self) -> Future:
        """A future of the tensors that the operation writes."""
        future = Future()

        def finished() -> None:
            error = self.exception()
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(self.result())

        self._on_done(finished)
        return future

    def get_future_result(self) -> Future:
        """A future of how the work ended."""
        future = Future()

        def finished() -> None:
            failed = self.exception() is not None
            future.set_result(int(WorkResult.COMM_ERROR if failed else WorkResult.SUCCESS))

        self._on_done(finished)
        return future

    def synchronize(self) -> None:
        """Lets what follows see the result."""
        self.wait()

    def block_current_stream(self) -> None:
        """Lets what follows on the current stream see the result."""
        self.wait()

    def boxed(self) -> Work:
        """The work as operators carry it."""
        return self

    @staticmethod
    def unbox(work: Work) -> Work:
        """The work that boxed() gave."""
        return work


_c10d._set_work_class(Work)


class _PythonWork(Work):
    """Work whose state is a future of Python's."""

    def __init__(self, future: Future, kind: OpType = OpType.UNKNOWN) -> None:
        super().__init__()
        self._future, self._kind = future, kind

    def wait(self, timeout: datetime.timedelta = NO_TIMEOUT) -> bool:
        """Returns when done."""
        self._future.wait()
        return True

    def is_completed(self) -> bool:
        """Whether the work has ended."""
        return self._future.done()

    def is_success(self) -> bool:
        """Whether the work has ended well."""
        return self._future.done() and self.exception() is None

    def exception(self) -> Exception | None:
        """What went wrong."""
        try:
            self._future.value() if self._future.done() else None
        except Exception as error:
            return error
        return None

    def result(self) -> list[torch.Tensor]:
        """The value of the future, as a list."""
        value = self._future.wait()
        return list(value) if isinstance(value, (list, tuple)) else [value]

    def get_future(self) -> Future:
        """The future itself."""
        return self._future

    def _get_op_type(self) -> int:
        return int(self._kind)


def create_work_from_future(future: Future) -> Work:
    """Work that is done when the future is."""
    return _PythonWork(future)


class PythonCallbackWork(Work):
    """Work that waits by calling a function."""

    def __init__(self, callback: Callable[[datetime.timedelta], bool]) -> None:
        super().__init__()
        self._callback, self._done = callback, False

    def wait(self, timeout: datetime.timedelta = NO_TIMEOUT) -> bool:
        """Calls the function."""
        result = self._callback(timeout)
        self._done = True
        return result

    def is_completed(self) -> bool:
        """Whether the function was called."""
        return self._done


class CombinedWork(Work):
    """Several pieces of work as one."""

    def __init__(self, parts: Sequence[Work]) -> None:
        super().__init__()
        self._parts = list(parts)

    def wait(self, timeout: datetime.timedelta = NO_TIMEOUT) -> bool:
        """Returns when all are done."""
        for part in self._parts:
            part.wait(timeout)
        return True

    def is_completed(self) -> bool:
        """Whether all have ended."""
        return all(part.is_completed() for part in self._parts)

    def is_success(self) -> bool:
        """Whether all have ended well."""
        return all(part.is_success() for part in self._parts)

    def exception(self) -> BaseException | None:
        """What went wrong first."""
        return next((e for part in self._parts if (e := part.exception()) is not None), None)

    def result(self) -> list[torch.Tensor]:
        """The tensors of all."""
        return [tensor for part in self._parts for tensor in part.result()]

    def get_future(self) -> Future:
        """A future of the tensors of all."""
        futures = [part.get_future() for part in self._parts]
        return torch.futures.collect_all(futures).then(
            lambda done: [tensor for one in done.wait() for tensor in one.wait()]
        )

    def _get_op_type(self) -> int:
        return int(OpType.COALESCED)
