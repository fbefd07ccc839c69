"""What several steps need: open streams that close themselves, and words about functions that
cannot be pickled for a worker."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from torch.utils._import_utils import dill_available

__all__ = ["StreamWrapper", "get_file_binaries_from_pathnames", "warn_if_unpicklable"]


def warn_if_unpicklable(function: Callable[..., Any]) -> None:
    """Warns of a function that pickle cannot send to a worker, unless dill is there to do it."""
    if not callable(function):
        raise TypeError(f"A callable function is expected, but {type(function)} is provided.")
    while isinstance(function, functools.partial):
        function = function.func
    if dill_available():
        return
    name = getattr(function, "__qualname__", "")
    if name.endswith("<lambda>"):
        kind = "Lambda"
    elif "<locals>" in name and hasattr(function, "__code__"):
        kind = "Local"
    else:
        return
    warnings.warn(
        f"{kind} function is not supported by pickle, please use a regular Python function or "
        "functools.partial instead.",
        stacklevel=4,
    )


class StreamWrapper:
    """An open stream that is closed when the wrapper is dropped. Everything else is the stream's;
    with a parent stream, such as an archive, that one closes when its last child has."""

    # Streams made by steps that have not been closed, for those who look for leaks.
    session_streams: dict[StreamWrapper, int] = {}
    debug_unclosed_streams = False

    def __init__(
        self, file_obj: Any, parent_stream: StreamWrapper | None = None, name: str | None = None
    ) -> None:
        if parent_stream is not None and not isinstance(parent_stream, StreamWrapper):
            raise RuntimeError(
                f"Parent stream should be StreamWrapper, {type(parent_stream)} was given"
            )
        self.file_obj = file_obj
        self.child_counter = 0
        self.parent_stream = parent_stream
        self.close_on_last_child = False
        self.name = name
        self.closed = False
        if parent_stream is not None:
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1

    @classmethod
    def close_streams(cls, value: Any, depth: int = 0) -> None:
        """Closes the streams in a value of lists, tuples and dicts."""
        if isinstance(value, StreamWrapper):
            value.close()
        elif depth <= 10:
            inner = value.values() if isinstance(value, dict) else value
            for item in inner if isinstance(value, (dict, list, tuple)) else ():
                cls.close_streams(item, depth + 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["file_obj"], name)

    def close(self) -> None:
        """Closes the stream, and a parent that waited for it."""
        if self.closed:
            return
        StreamWrapper.session_streams.pop(self, None)
        with contextlib.suppress(AttributeError):  # not every stream has something to close
            self.file_obj.close()
        self.closed = True
        parent = self.parent_stream
        if parent is not None:
            parent.child_counter -= 1
            if parent.child_counter == 0 and parent.close_on_last_child:
                parent.close()

    def autoclose(self) -> None:
        """Closes the stream when its last child has closed; at once if it has none."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __enter__(self) -> StreamWrapper:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.file_obj)})

    def __del__(self) -> None:
        if not self.__dict__.get("closed", True):
            self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        return f"StreamWrapper<{self.name if self.name is not None else repr(self.file_obj)}>"

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, file_obj: Any) -> None:
        StreamWrapper.__init__(self, file_obj)


def get_file_binaries_from_pathnames(
    pathnames: Iterable[str], mode: str, encoding: str | None = None
) -> Iterator[tuple[str, BinaryIO]]:
    """(name, open stream) for each name."""
    mode = mode if "r" in mode else "r" + mode
    for pathname in [pathnames] if isinstance(pathnames, str) else pathnames:
        if not isinstance(pathname, str):
            raise TypeError(f"Expected string type for pathname, but got {type(pathname).__name__}")
        yield pathname, StreamWrapper(open(pathname, mode, encoding=encoding), name=pathname)  # noqa: SIM115
