"""torch.classes.ns.Name: C++ classes that extensions registered with torch::class_."""

import os

import torch


class _Namespace:
    """The classes of one namespace; a class that was looked up stays."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, attr: str) -> torch._C.ScriptClass:
        if attr.startswith("__"):
            raise AttributeError(attr)
        if self.name in ("quantized", "rnn"):
            torch._C._register_quantized_operators()
        if f"__torch__.torch.classes.{self.name}.{attr}" not in torch._C._all_custom_classes():
            raise RuntimeError(
                f"Tried to instantiate class '{self.name}.{attr}', but it does not exist! Ensure "
                "that it is registered via torch::class_"
            )
        found = torch._C._get_custom_class_python_wrapper(self.name, attr)
        setattr(self, attr, found)
        return found


class _Classes:
    """Namespaces of classes by name."""

    @property
    def loaded_libraries(self) -> set[str]:
        """The libraries that load_library opened."""
        return torch.ops.loaded_libraries

    def load_library(self, path: str | os.PathLike[str]) -> None:
        """Opens a shared library; it registers its classes and operators when loaded."""
        torch.ops.load_library(path)

    def __getattr__(self, name: str) -> _Namespace:
        if name.startswith("__"):
            raise AttributeError(name)
        found = _Namespace(name)
        setattr(self, name, found)
        return found


classes = _Classes()
