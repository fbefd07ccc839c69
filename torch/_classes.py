"""torch.classes: C++ classes registered by extensions. None can be registered yet."""


class _Namespace:
    def __init__(self, name) -> None:
        self.name = name

    def __getattr__(self, attr):
        if attr.startswith("__"):
            raise AttributeError(attr)
        raise RuntimeError(
            f"Tried to instantiate class '{self.name}.{attr}', but it does not exist! Ensure that "
            "it is registered via torch::class_"
        )


class _Classes:
    """Namespaces of classes by name."""

    @property
    def loaded_libraries(self):
        """The libraries that load_library opened."""
        import torch

        return torch.ops.loaded_libraries

    def load_library(self, path) -> None:
        """Opens a shared library; it registers its operators when loaded."""
        import torch

        torch.ops.load_library(path)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Namespace(name)


classes = _Classes()
