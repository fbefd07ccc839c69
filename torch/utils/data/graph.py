"""The graph of a data pipe: which pipes it reads, found in its attributes."""

from torch.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]


def _sources(value, found, seen) -> None:
    """Adds the pipes in an attribute, through containers and plain objects that hold a pipe."""
    if isinstance(value, IterDataPipe | MapDataPipe):
        found.setdefault(id(value), value)
    elif id(value) in seen:
        return
    elif isinstance(value, dict):
        seen.add(id(value))
        for item in value.values():
            _sources(item, found, seen)
    elif isinstance(value, list | tuple | set):
        seen.add(id(value))
        for item in value:
            _sources(item, found, seen)
    elif hasattr(value, "datapipe"):
        _sources(value.datapipe, found, seen)


def _traverse(datapipe, cache):
    if not isinstance(datapipe, IterDataPipe | MapDataPipe):
        raise RuntimeError(
            f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found"
        )
    key = id(datapipe)
    if key in cache:
        return {}
    cache = cache | {key}
    found = {}
    _sources(dict(vars(datapipe)), found, set())
    inner = {}
    for source in found.values():
        inner.update(_traverse(source, cache))
    return {key: (datapipe, inner)}


def traverse_dps(datapipe):
    """{id: (pipe, the same of the pipes it reads)}."""
    return _traverse(datapipe, frozenset())


def traverse(datapipe, only_datapipe=None):
    """The name that traverse_dps had first."""
    return traverse_dps(datapipe)
