"""Names of parts that do not exist yet. Programs import them long before they use them, if ever:
the names are there, isinstance against the classes is False, and whoever starts the work gets
NotImplementedError that says what is missing.

`install` also serves whole submodules from one table, so that a package of fifty modules with a few
names each needs no fifty files."""

from __future__ import annotations

import importlib.machinery
import sys
import types


def _refuse(name):
    raise NotImplementedError(f"{name} is not implemented in this version")


def function(name):
    """A function that raises NotImplementedError when called."""

    def later(*args, **kwargs) -> None:
        _refuse(name)

    later.__module__, _, later.__name__ = name.rpartition(".")
    later.__qualname__ = later.__name__
    later.__doc__ = "Not implemented yet."
    return later


class _LaterMeta(type):
    """Makes Class.member raise NotImplementedError too; hasattr says that it is not there."""

    def __getattr__(cls, member):
        if member.startswith("__"):
            raise AttributeError(member)
        raise _NoMember(f"{cls.__module__}.{cls.__name__}.{member} is not implemented")


class _NoMember(NotImplementedError, AttributeError):
    pass


def cls(name):
    """A class that can be named, derived from and asked about, but not made."""
    module, _, short = name.rpartition(".")

    def refuse(self, *args, **kwargs) -> None:
        _refuse(name)

    body = {
        "__module__": module,
        "__doc__": "Not implemented yet.",
        "__init__": refuse,
        "with_args": classmethod(_Configured),
    }
    return _LaterMeta(short, (), body)


class _Configured:
    """A class with some of its arguments given, as configurations of quantization hold it."""

    def __init__(self, made, **kwargs) -> None:
        self.made = made
        self.kwargs = kwargs

    def __call__(self, *args, **kwargs):
        return self.made(*args, **{**self.kwargs, **kwargs})

    def with_args(self, **kwargs):
        return _Configured(self.made, **{**self.kwargs, **kwargs})


def names(module, words):
    """{name: placeholder}: a class for a name with a capital, a function otherwise."""
    table = {}
    for word in words.split():
        make = cls if word.lstrip("_")[:1].isupper() else function
        table[word] = make(f"{module}.{word}")
    return table


class _Finder:
    """Finds the submodules of the tables given to install."""

    tables = {}
    real = {}  # what exists of a module

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in cls.tables:
            return None
        return importlib.machinery.ModuleSpec(name, cls, is_package=True)

    @classmethod
    def create_module(cls, spec):
        return types.ModuleType(spec.name, "Names of a part that is not implemented yet.")

    @classmethod
    def exec_module(cls, module) -> None:
        module.__dict__.update(names(module.__name__, cls.tables[module.__name__]))
        module.__dict__.update(cls.real.get(module.__name__, {}))


def install(package, text) -> set[str]:
    """Makes submodules importable: one line "sub.module: Name name ..." each. Returns the names of
    the first level, for the package's __getattr__."""
    first = set()
    for line in text.strip().splitlines():
        module, _, words = line.strip().partition(":")
        parts = module.strip().split(".")
        first.add(parts[0])
        for depth in range(1, len(parts)):
            _Finder.tables.setdefault(".".join([package, *parts[:depth]]), "")
        full = f"{package}.{module.strip()}"
        _Finder.tables[full] = f"{_Finder.tables.get(full, '')} {words}"
    if _Finder not in sys.meta_path:
        sys.meta_path.append(_Finder)
    return first


def submodules(package, first):
    """A module __getattr__ that imports the submodules named."""

    def get(name):
        if name in first:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module '{package}' has no attribute '{name}'")

    return get
