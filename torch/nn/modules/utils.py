"""Small helpers of modules: one number for all dimensions, or one for each."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from types import FunctionType

__all__ = ["consume_prefix_in_state_dict_if_present"]

# Private bases that PyTorch's messages name as well.
_SPOKEN_OF = frozenset(
    f"{base}.{name}"
    for base, names in {
        "_AdaptiveAvgPoolNd": "__init__",
        "_AdaptiveMaxPoolNd": "__init__",
        "_BatchNorm": "__init__ forward",
        "_CircularPadNd": "forward",
        "_ConstantPadNd": "forward",
        "_DropoutNd": "__init__",
        "_InstanceNorm": "__init__ forward",
        "_LPPoolNd": "__init__",
        "_Loss": "__init__",
        "_MaxPoolNd": "__init__",
        "_ReflectionPadNd": "forward",
        "_ReplicationPadNd": "forward",
        "_WeightedLoss": "__init__",
    }.items()
    for name in names.split()
)


def _ntuple(n, name="parse"):
    def parse(x) -> tuple[int, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _name_after_class(cls) -> None:
    """Gives a class its own __init__ and forward where a private base or a factory made them, so
    that the messages about missing arguments name the class that was called."""
    for name in ("__init__", "forward"):
        inherited = getattr(cls, name, None)
        if not isinstance(inherited, FunctionType):
            continue
        written_as = inherited.__qualname__
        hidden = written_as.startswith("_") or written_as == "RNNBase.forward"
        if not hidden or written_as in _SPOKEN_OF:
            continue
        own = FunctionType(
            inherited.__code__,
            inherited.__globals__,
            name,
            inherited.__defaults__,
            inherited.__closure__,
        )
        own.__kwdefaults__ = inherited.__kwdefaults__
        own.__annotations__ = dict(inherited.__annotations__)
        own.__dict__.update(inherited.__dict__)
        own.__doc__ = inherited.__doc__
        own.__module__ = cls.__module__
        own.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, own)


def _reverse_repeat_tuple(t, n):
    """(a, b) to (b, b, a, a) for n = 2: what F.pad wants of paddings listed first to last."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size, defaults):
    """The sizes with None replaced by the defaults of the same dimensions."""
    if isinstance(out_size, int | float):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    tail = defaults[-len(out_size) :]
    return [v if v is not None else d for v, d in zip(out_size, tail, strict=False)]


def consume_prefix_in_state_dict_if_present(state_dict, prefix) -> None:
    """Removes a prefix from the keys of a state_dict, in place: "module." of DataParallel."""
    for key in list(state_dict.keys()):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata.keys()):
        if key and (key == prefix.replace(".", "") or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)
