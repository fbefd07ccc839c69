"""A module that knows how it is exported."""

from __future__ import annotations

import abc

from torch import nn

__all__ = ["ExportableModule"]


class ExportableModule(nn.Module, abc.ABC):
    """A module with example arguments, sizes that vary and names for its model."""

    @abc.abstractmethod
    def example_arguments(self) -> tuple[tuple[object, ...], dict[str, object] | None]:
        """(args, kwargs) of a call."""

    def dynamic_shapes(self) -> dict | tuple | list | None:
        """Sizes that vary, as torch.export takes them: none."""
        return None

    def input_names(self) -> list[str] | None:
        """Names of the model's inputs: those of the program."""
        return None

    def output_names(self) -> list[str] | None:
        """Names of the model's outputs: those of the program."""
        return None

    def to_onnx(self, **kwargs: object) -> object:
        """torch.onnx.export with what the module says of itself, unless keywords say otherwise."""
        import torch.onnx

        args, named = self.example_arguments()
        settings = {
            "kwargs": named,
            "dynamic_shapes": self.dynamic_shapes(),
            "input_names": self.input_names(),
            "output_names": self.output_names(),
            **kwargs,
        }
        return torch.onnx.export(self, args, **settings)
