"""The wrapper that torch.compile puts around a module."""

import torch

__all__ = ["OptimizedModule", "is_dynamo_supported"]


def is_dynamo_supported() -> bool:
    """Whether functions can be traced: not yet."""
    return False


class OptimizedModule(torch.nn.Module):
    """What torch.compile(module) returns: a module whose one child `_orig_mod` does the work, so
    that the keys of its state_dict are those of PyTorch."""

    def __init__(self, mod, dynamo_ctx=None) -> None:
        super().__init__()
        # None says that nothing was compiled; programs ask whether the attribute is there.
        self.dynamo_ctx = dynamo_ctx
        self._orig_mod = mod

    def forward(self, *args, **kwargs):
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name, value) -> None:
        # The training flag and all else belong to the module inside; what Module itself keeps, to
        # the wrapper.
        inner = self.__dict__.get("_modules", {}).get("_orig_mod")
        if inner is None or name == "_orig_mod" or name in self.__dict__:
            super().__setattr__(name, value)
            if inner is not None and name == "training":
                inner.training = value
            return
        setattr(inner, name, value)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __reduce__(self):
        return type(self), (self._orig_mod,)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __iter__(self):
        return iter(self._orig_mod)

    def __getitem__(self, key):
        return self._orig_mod[key]

    def __bool__(self) -> bool:
        return True
