"""The metadata of a node as passes hand it on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

__all__ = ["NodeMetadata"]

# Belongs to the value of the new node, so that it is never taken from the old one.
_OF_VALUE = frozenset({"val", "tensor_meta"})


class NodeMetadata(Mapping):
    """A dictionary that keeps what says where a node came from."""

    def __init__(self, data: Mapping[str, object]) -> None:
        self.data = dict(data)

    def __getitem__(self, key: str) -> object:
        return self.data[key]

    def __setitem__(self, key: str, value: object) -> None:
        if key in _OF_VALUE:
            raise RuntimeError(f"Cannot override node key {key}.")
        self.data[key] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def copy(self) -> NodeMetadata:
        """Another one with the same entries."""
        return NodeMetadata(self.data)

    def kept(self) -> dict[str, object]:
        """What a node that takes the place of the old one has of it."""
        return {key: value for key, value in self.data.items() if key not in _OF_VALUE}
