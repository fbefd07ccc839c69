"""The parts of torch.library: schema inference, custom operators and their checks."""

from torch._library.fake_class_registry import register_fake_class

__all__ = ["register_fake_class"]
