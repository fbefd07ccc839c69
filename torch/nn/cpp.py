"""Modules written in C++ as modules of Python: what torch::python::bind_module makes of a class
derived from torch::nn::Module. The C++ object owns parameters, buffers and submodules; the tables
that torch.nn.Module keeps are views of it, so that both sides see what either adds."""

from collections.abc import Mapping

from torch import nn

__all__ = ["ModuleWrapper", "OrderedDictWrapper"]


class OrderedDictWrapper(Mapping):
    """One table of a C++ module, read anew at every use."""

    def __init__(self, cpp_module, table: str) -> None:
        self._cpp_module = cpp_module
        self._table = table

    def _read(self) -> dict:
        found = dict(getattr(self._cpp_module, self._table)())
        if self._table == "_modules":
            return {name: ModuleWrapper(module) for name, module in found.items()}
        return found

    def __getitem__(self, name):
        return self._read()[name]

    def __iter__(self):
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __repr__(self) -> str:
        return repr(self._read())


class ModuleWrapper(nn.Module):
    """A torch.nn.Module around a module of C++. Methods of the C++ class are methods here."""

    def __init__(self, cpp_module) -> None:
        super().__init__()
        tables = {name: OrderedDictWrapper(cpp_module, name) for name in _TABLES}
        self.__dict__.update(tables, cpp_module=cpp_module)
        del self.__dict__["training"]

    def __getattr__(self, name):
        cpp_module = self.__dict__.get("cpp_module")
        if cpp_module is None:
            raise AttributeError(name)
        if name == "training":
            return cpp_module.is_training()
        return getattr(cpp_module, name)

    def __setattr__(self, name, value) -> None:
        if name == "training":
            self.cpp_module.train(value)
        elif isinstance(value, (nn.Parameter, nn.Module)):
            raise AttributeError(
                f"{self} is a module of C++: its C++ class registers parameters and submodules, "
                f"'{name}' cannot be set from Python"
            )
        else:
            object.__setattr__(self, name, value)

    def forward(self, *args, **kwargs):
        return self.cpp_module.forward(*args, **kwargs)

    def _apply(self, fn, recurse=True):
        for tensor in [*self.parameters(), *self.buffers()]:
            tensor.data = fn(tensor.data)
            if tensor.grad is not None:
                tensor.grad.data = fn(tensor.grad.data)
        return self

    def train(self, mode=True):
        self.cpp_module.train(mode)
        return self

    def clone(self):
        """A copy with parameters of its own, made by the C++ class."""
        return type(self)._around(self.cpp_module.clone())

    @classmethod
    def _around(cls, cpp_module):
        wrapper = cls.__new__(cls)
        ModuleWrapper.__init__(wrapper, cpp_module)
        return wrapper

    # Lists, which callers count and index.
    def parameters(self, recurse=True):
        return [parameter for _, parameter in self.named_parameters(recurse=recurse)]

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        return list(super().named_parameters(prefix, recurse, remove_duplicate))

    def buffers(self, recurse=True):
        return [buffer for _, buffer in super().named_buffers(recurse=recurse)]

    def modules(self):
        return [module for _, module in self.named_modules()]

    def __repr__(self) -> str:
        return self.cpp_module.__repr__()


_TABLES = ("_parameters", "_buffers", "_modules")


def _wrap_class(cpp_class, name: str, module: str):
    """The Python class of a bound C++ class, whose constructors it has."""

    def __init__(self, *args, **kwargs) -> None:
        ModuleWrapper.__init__(self, cpp_class(*args, **kwargs))

    return type(name, (ModuleWrapper,), {"__init__": __init__, "__module__": module})
