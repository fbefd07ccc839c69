"""The two kinds of data pipe and how their steps become methods: functional_datapipe("batch") on a
class lets every pipe of that kind be followed by .batch(...). A pipe has one valid iterator at a
time, since its steps keep their state in themselves."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sized
from typing import TypeVar

from torch.utils.data.datapipes._hook_iterator import _SnapshotState, one_iterator
from torch.utils.data.dataset import Dataset, IterableDataset

_T_co = TypeVar("_T_co", covariant=True)

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe"]


class _Pipe:
    """What both kinds share: registered functions as methods, and hooks around pickling."""

    reduce_ex_hook = None
    getstate_hook = None
    str_hook = None
    repr_hook = None

    def __getattr__(self, name):
        function = type(self).functions.get(name)
        if function is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        bound = functools.partial(function, self)
        functools.update_wrapper(bound, function, assigned=("__doc__",))
        return bound

    @classmethod
    def register_function(cls, function_name, function) -> None:
        """Makes function(pipe, ...) a method of every pipe of this kind."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name, cls_to_register) -> None:
        """Makes a class of pipes a method of every pipe of this kind."""
        if function_name in cls.functions:
            raise Exception(
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )

        def function(source, *args, **kwargs):
            return cls_to_register(source, *args, **kwargs)

        functools.update_wrapper(function, cls_to_register, assigned=("__doc__",))
        cls.functions[function_name] = function

    def __getstate__(self):
        state = self.__dict__
        if "_fast_forward_iterator" in state:  # a pass cannot be pickled
            state = {k: v for k, v in state.items() if k != "_fast_forward_iterator"}
        return state if self.getstate_hook is None else type(self).getstate_hook(state)

    def __reduce_ex__(self, *args, **kwargs):
        if self.reduce_ex_hook is not None:
            try:
                return type(self).reduce_ex_hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(*args, **kwargs)

    @classmethod
    def set_getstate_hook(cls, hook_fn) -> None:
        """A function that gives the state to pickle; None takes it away."""
        cls.getstate_hook = _set_hook(cls.getstate_hook, hook_fn, "getstate_hook")

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn) -> None:
        """A function that pickles a pipe; None takes it away."""
        cls.reduce_ex_hook = _set_hook(cls.reduce_ex_hook, hook_fn, "reduce_ex_hook")

    def __repr__(self):
        if self.repr_hook is not None:
            return type(self).repr_hook(self)
        return type(self).__qualname__

    def __str__(self):
        if self.str_hook is not None:
            return type(self).str_hook(self)
        return type(self).__qualname__

    def __dir__(self):
        return [*super().__dir__(), *type(self).functions]


def _set_hook(old, new, name):
    if old is not None and new is not None:
        raise RuntimeError(f"Attempt to override existing {name}")
    return None if new is None else staticmethod(new).__func__


def _documented(cls: type, name: str) -> str:
    """The text of a class of pipes with its name as a method, its arguments and a call."""
    made = cls.__new__ if "__new__" in vars(cls) else cls.__init__
    lines, needed = [], []
    for argument, parameter in list(inspect.signature(made).parameters.items())[1:]:
        if parameter.default is not inspect.Parameter.empty:
            lines.append(f"    {argument} (default: {parameter.default!r})")
            continue
        lines.append(f"    {argument}")
        needed.append(argument)
    call = f"    >>> pipe = pipe.{name}({', '.join(needed[1:])})"
    parts = (inspect.cleandoc(cls.__doc__ or ""), f"(functional name: ``{name}``)")
    return "\n\n".join((*parts, "Args:\n" + "\n".join(lines), "Example:\n" + call)) + "\n"


def length_of(pipe: _Pipe, source: object) -> int:
    """The length of what a pipe reads from; TypeError in the name of the pipe if it has none."""
    if not isinstance(source, Sized):
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return len(source)


class IterDataPipe(_Pipe, IterableDataset[_T_co]):
    """A pipe that is iterated. Subclasses define __iter__, and reset() for state of their own."""

    functions = {}
    _number_of_samples_yielded = 0
    _snapshot_state = _SnapshotState.NotStarted

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        if "__iter__" in cls.__dict__:
            cls.__iter__ = one_iterator(cls.__dict__["__iter__"])

    def __iter__(self):
        return self

    @classmethod
    def register_datapipe_as_function(
        cls, function_name, cls_to_register, enable_df_api_tracing=False
    ) -> None:
        """Makes a class of pipes a method of every IterDataPipe."""
        super().register_datapipe_as_function(function_name, cls_to_register)

    def reset(self) -> None:
        """Called before each pass; here nothing is kept from one to the next."""
        return None


class DFIterDataPipe(IterDataPipe):
    """A pipe of data frames."""


class MapDataPipe(_Pipe, Dataset[_T_co]):
    """A pipe that is indexed. Subclasses define __getitem__ and __len__."""

    functions = {}


class _IterDataPipeSerializationWrapper(IterDataPipe):
    """A pipe on its way to a worker; it stands for the pipe there."""

    def __init__(self, datapipe) -> None:
        super().__init__()
        self._datapipe = datapipe

    def __iter__(self):
        yield from self._datapipe

    def __len__(self) -> int:
        return len(self._datapipe)


class _MapDataPipeSerializationWrapper(MapDataPipe):
    """A pipe on its way to a worker; it stands for the pipe there."""

    def __init__(self, datapipe) -> None:
        super().__init__()
        self._datapipe = datapipe

    def __getitem__(self, index):
        return self._datapipe[index]

    def __len__(self) -> int:
        return len(self._datapipe)


class functional_datapipe:
    """Registers the class it decorates as a method of all pipes of its kind."""

    def __init__(self, name, enable_df_api_tracing=False) -> None:
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls):
        if not isinstance(cls, type) or not issubclass(cls, IterDataPipe | MapDataPipe):
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")
        kind = IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe
        cls.__doc__ = _documented(cls, self.name)
        kind.register_datapipe_as_function(self.name, cls)
        return cls


class DataChunk(list):
    """A batch within a pipe: a list that shows what it is made of."""

    def __init__(self, items) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent="") -> str:
        """The items in one line."""
        return indent + "[" + ", ".join(str(item) for item in iter(self)) + "]"

    def __iter__(self):
        yield from super().__iter__()

    def raw_iterator(self):
        """The items as they were given."""
        yield from self.items
