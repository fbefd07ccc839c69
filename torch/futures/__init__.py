"""Values that another thread will set."""

from __future__ import annotations

import threading
import traceback
import types
import warnings

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value that is set once. Callbacks run in the thread that sets it, in the order they were
    added, or at once when it is set already."""

    def __init__(self, *, devices=None) -> None:
        self._devices = list(devices or ())
        self._ready = threading.Condition()
        self._done = False
        self._value = self._error = None
        self._callbacks = []

    __class_getitem__ = classmethod(types.GenericAlias)

    def __getstate__(self):
        raise RuntimeError("Can not pickle torch.futures.Future")

    def done(self):
        """Whether the value, or an error, is set."""
        return self._done

    def wait(self):
        """The value, as soon as it is there; raises the error if one was set."""
        with self._ready:
            self._ready.wait_for(lambda: self._done)
        if self._error is not None:
            raise self._error
        return self._value

    def value(self):
        """The value; an error if it is not there yet."""
        if not self._done:
            raise RuntimeError("value() called on a future that is not completed")
        return self.wait()

    def _finish(self, value, error) -> None:
        with self._ready:
            if self._done:
                raise RuntimeError(
                    "Future can only be marked completed once; this one has a value or error"
                )
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._ready.notify_all()
        for callback in callbacks:
            callback(self)

    def set_result(self, result) -> None:
        """Sets the value."""
        self._finish(result, None)

    def set_exception(self, result) -> None:
        """Sets an error that wait() raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _when_done(self, callback) -> None:
        with self._ready:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback) -> Future:
        """A future of what callback(self) returns."""
        result = Future(devices=self._devices)

        def run(future) -> None:
            try:
                value = callback(future)
            except Exception as error:
                text = "".join(traceback.format_exception(error))
                failure = RuntimeError(f"{type(error).__name__}: {error}\n\n{text}")
                failure.__cause__ = error
                result.set_exception(failure)
            else:
                result.set_result(value)

        self._when_done(run)
        return result

    def add_done_callback(self, callback) -> None:
        """Calls callback(self) when done; its errors are reported as warnings."""

        def run(future) -> None:
            try:
                callback(future)
            except Exception as error:
                warnings.warn(f"a callback of a future raised {error!r}", stacklevel=2)

        self._when_done(run)


def collect_all(futures):
    """A future of the list of futures, done when all of them are."""
    futures = list(futures)
    if any(future is None for future in futures):
        raise RuntimeError("Future can't be None")
    result = Future()
    left = [len(futures)]
    lock = threading.Lock()
    if not futures:
        result.set_result([])
        return result

    def one_done(_) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            failed = next((f._error for f in futures if f._error is not None), None)
            if failed is not None:
                result.set_exception(failed)
            else:
                result.set_result(futures)

    for future in futures:
        future._when_done(one_done)
    return result


def wait_all(futures):
    """The values of all futures; raises the first error."""
    return [future.wait() for future in collect_all(futures).wait()]
