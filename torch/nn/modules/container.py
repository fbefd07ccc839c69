"""Modules that hold other modules or parameters: Sequential, ModuleList, ModuleDict,
ParameterList and ParameterDict."""

from __future__ import annotations

import operator
import typing
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain, islice
from typing import Any, NoReturn

import torch
from torch.nn.modules.module import Module, _addindent
from torch.nn.parameter import Parameter

if typing.TYPE_CHECKING:
    from typing import Self

__all__ = ["Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


class Container(Module):
    """Modules by keyword; kept for old programs."""

    def __init__(self, **kwargs) -> None:
        super().__init__()
        for key, value in kwargs.items():
            self.add_module(key, value)


def _position(index: int, length: int) -> int:
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


class Sequential(Module):
    """Modules applied one after the other."""

    def __init__(self, *args) -> None:
        super().__init__()
        by_name = len(args) == 1 and isinstance(args[0], OrderedDict)
        named = args[0] if by_name else {str(i): module for i, module in enumerate(args)}
        for key, module in named.items():
            self.add_module(key, module)

    def _key(self, index) -> str:
        return next(islice(self._modules, _position(index, len(self)), None))

    def __getitem__(self, idx) -> Module:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._key(idx)]

    def __setitem__(self, idx, module) -> None:
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx) -> None:
        keys = list(self._modules)
        for key in keys[idx] if isinstance(idx, slice) else [self._key(idx)]:
            delattr(self, key)
        self._renumber()

    def _renumber(self) -> None:
        self._modules = {str(i): module for i, module in enumerate(self._modules.values())}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def __add__(self, other) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, but "
                f"{type(other)} is given."
            )
        return Sequential(*chain(self, other))

    def __iadd__(self, other) -> Self:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, but "
                f"{type(other)} is given."
            )
        return self.extend(other)

    def __mul__(self, other) -> Sequential:
        self._check_times(other)
        return Sequential(*chain.from_iterable(self for _ in range(other)))

    __rmul__ = __mul__

    def __imul__(self, times) -> Self:
        self._check_times(times)
        return self.extend([module for _ in range(times - 1) for module in list(self)])

    @classmethod
    def _check_times(cls, times) -> None:
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {cls} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {cls}")

    def append(self, module) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index, module) -> Self:
        """Puts a module before a position."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        modules = list(self._modules.values())
        if not -len(modules) <= index <= len(modules):
            raise IndexError(f"Index out of range: {index}")
        modules.insert(index + len(modules) if index < 0 else index, module)
        self._modules = {str(i): m for i, m in enumerate(modules)}
        return self

    def extend(self, sequential) -> Self:
        """Adds modules at the end."""
        for module in list(sequential):
            self.append(module)
        return self

    def pop(self, key) -> Module:
        """Takes a module out."""
        module = self[key]
        del self[key]
        return module

    def forward(self, input: torch.Tensor):
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(Module):
    """A list of modules that are properly registered."""

    def __init__(self, modules=None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _get_abs_string_index(self, index: int) -> str:
        """The name under which the module at a position, negative ones included, is kept."""
        return str(_position(index, len(self)))

    def __getitem__(self, idx) -> Module:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[self._get_abs_string_index(idx)]

    def __setitem__(self, idx, module) -> None:
        setattr(self, self._get_abs_string_index(idx), module)

    def __delitem__(self, idx) -> None:
        one = not isinstance(idx, slice)
        for position in [self._get_abs_string_index(idx)] if one else range(len(self))[idx]:
            delattr(self, str(position))
        self._modules = {str(i): module for i, module in enumerate(self._modules.values())}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __iadd__(self, modules) -> Self:
        return self.extend(modules)

    def __add__(self, other) -> ModuleList:
        return type(self)(chain(self, other))

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def __repr__(self) -> str:
        """Equal neighbours are shown once, with their range."""
        texts = [repr(module) for module in self]
        if not texts:
            return self._get_name() + "()"
        blocks = []
        for i, text in enumerate(texts):
            if blocks and blocks[-1][2] == text:
                blocks[-1][1] = i
            else:
                blocks.append([i, i, text])
        lines = []
        for first, last, text in blocks:
            if first == last:
                lines.append(_addindent(f"({first}): {text}", 2))
            else:
                lines.append(_addindent(f"({first}-{last}): {last - first + 1} x {text}", 2))
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index, module) -> None:
        """Puts a module before a position."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._modules = {str(i): m for i, m in enumerate(modules)}

    def append(self, module) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key) -> Module:
        """Takes a module out."""
        module = self[key]
        del self[key]
        return module

    def extend(self, modules) -> Self:
        """Adds modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                + type(modules).__name__
            )
        for module in list(modules):
            self.append(module)
        return self

    forward = Module.forward


class ModuleDict(Module):
    """A dictionary of modules that are properly registered."""

    def __init__(self, modules=None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key) -> Module:
        return self._modules[key]

    def __setitem__(self, key, module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Takes everything out."""
        self._modules.clear()

    def pop(self, key) -> Module:
        """Takes one module out."""
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        """The names with their modules."""
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return self._modules.values()

    def update(self, modules) -> None:
        """Adds modules from a mapping or pairs."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                + type(modules).__name__
            )
        pairs = modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        for position, pair in enumerate(pairs):
            if not isinstance(pair, Iterable):
                raise TypeError(
                    f"ModuleDict update sequence element #{position} should be Iterable; is"
                    + type(pair).__name__
                )
            pair = tuple(pair)
            if len(pair) != 2:
                raise ValueError(
                    f"ModuleDict update sequence element #{position} has length {len(pair)}; "
                    "2 is required"
                )
            self[pair[0]] = pair[1]

    forward = Module.forward


def _registrable(value) -> torch.Tensor:
    """The value, a plain tensor as a parameter."""
    plain = isinstance(value, torch.Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if plain else value


class ParameterList(Module):
    """A list of parameters (tensors become parameters) and other values."""

    def __init__(self, values=None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _key(self, index) -> str:
        return str(_position(index, self._size))

    def __getitem__(self, idx) -> Any:
        if isinstance(idx, slice):
            out = type(self)()
            for i in range(self._size)[idx]:
                out.append(self[i])
            return out
        return getattr(self, self._key(idx))

    def __setitem__(self, idx, param) -> None:
        setattr(self, self._key(idx), _registrable(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self._size))

    def __iadd__(self, parameters) -> Self:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, value) -> ParameterList:
        """Adds a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values) -> Self:
        """Adds values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, torch.Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                + type(values).__name__
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(
            f"  ({i}): {_describe(value, getattr(value, 'dtype', None))}"
            for i, value in enumerate(self)
        )

    def __call__(self, *args, **kwargs) -> NoReturn:
        raise RuntimeError("ParameterList should not be called.")


def _describe(value, dtype) -> str:
    """A line about a value; `dtype` is how a tensor's is written, which differs by container."""
    if not isinstance(value, torch.Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(str(n) for n in value.size())
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    place = f" ({value.device})" if value.device.type != "cpu" else ""
    return f"{kind} containing: [{dtype} of size {size}{place}]"


class ParameterDict(Module):
    """A dictionary of parameters (tensors become parameters) and other values."""

    def __init__(self, parameters=None) -> None:
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _attribute(key):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key) -> Any:
        return getattr(self, self._attribute(key))

    def __setitem__(self, key, value) -> None:
        attribute = self._attribute(key)
        self._keys[key] = None
        setattr(self, attribute, _registrable(value))

    def __delitem__(self, key) -> None:
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """A new dictionary with the same values."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self._keys))

    def setdefault(self, key, default=None) -> Any:
        """The value of a key, set first when missing."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Takes everything out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key) -> Any:
        """Takes one value out."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Takes the last pair out."""
        key, _ = self._keys.popitem()
        self._keys[key] = None
        return key, self.pop(key)

    def get(self, key, default=None) -> Any:
        """The value of a key, or default."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys, default=None) -> ParameterDict:
        """A new dictionary with one value for all keys."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> KeysView[str]:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterator[tuple[str, Any]]:
        """The keys with their values."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterator[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters) -> None:
        """Adds values from a mapping or pairs."""
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but "
                "got " + type(parameters).__name__
            )
        mapping = isinstance(parameters, (Mapping, ParameterDict))
        pairs = parameters.items() if mapping else parameters
        # Plain mappings once had no order, and files of that time count on this one.
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs = sorted(pairs, key=operator.itemgetter(0))
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(
            f"  ({key}): {_describe(value, torch.typename(getattr(value, 'data', value)))}"
            for key, value in self.items()
        )

    def __call__(self, *args, **kwargs) -> NoReturn:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other) -> ParameterDict:
        out = self.copy()
        out.update(other)
        return out

    def __ror__(self, other) -> ParameterDict:
        out = other.copy()
        out.update(self)
        return out

    def __ior__(self, other) -> Self:
        self.update(other)
        return self
