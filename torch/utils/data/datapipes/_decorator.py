"""Marking pipes whose order differs from run to run, and refusing them where that matters."""

import functools

from torch.utils.data.datapipes.datapipe import IterDataPipe

__all__ = ["guaranteed_datapipes_determinism", "non_deterministic"]

_determinism = False


class guaranteed_datapipes_determinism:
    """Within it, making a pipe that is marked non_deterministic raises."""

    def __init__(self) -> None:
        global _determinism
        self.prev = _determinism
        _determinism = True

    def __enter__(self) -> None:
        return None

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        global _determinism
        _determinism = self.prev


def _refuse(cls) -> None:
    if _determinism:
        raise TypeError(
            f"{cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_determinism'. "
            "You can turn off determinism for this DataPipe if that is acceptable for your "
            "application"
        )


class non_deterministic:
    """On a class of IterDataPipe: marks it. With a function of the constructor's arguments, on
    __init__: marks what that function says yes to."""

    cls = None

    def __init__(self, arg) -> None:
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(
                    "Only `IterDataPipe` can be decorated with `non_deterministic`, but "
                    f"{arg.__name__} is found"
                )
            self.cls = arg
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args, **kwargs):
        if self.cls is not None:
            _refuse(self.cls)
            return self.cls(*args, **kwargs)
        function = args[0]

        @functools.wraps(function)
        def deterministic_wrapper_fn(pipe, *arguments, **options):
            marked = self.deterministic_fn(*arguments, **options)
            if not isinstance(marked, bool):
                raise TypeError(
                    "deterministic_fn of `non_deterministic` decorator is required to return a "
                    f"boolean value, but {type(marked)} is found"
                )
            if marked:
                _refuse(type(pipe))
            return function(pipe, *arguments, **options)

        return deterministic_wrapper_fn
