"""Steps that put items together and take batches apart."""

from __future__ import annotations

import collections
import itertools

from torch.utils.data.datapipes.datapipe import (
    DataChunk,
    IterDataPipe,
    functional_datapipe,
    length_of,
)
from torch.utils.data.datapipes.utils.common import warn_if_unpicklable

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Batches of batch_size items."""

    def __init__(self, datapipe, batch_size, drop_last=False, wrapper_class=DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self):
        items = iter(self.datapipe)
        while batch := list(itertools.islice(items, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.wrapper_class(batch)

    def __len__(self) -> int:
        whole, rest = divmod(length_of(self, self.datapipe), self.batch_size)
        return whole if self.drop_last or rest == 0 else whole + 1


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The items of batches, through unbatch_level levels; -1: all of them."""

    def __init__(self, datapipe, unbatch_level=1) -> None:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self):
        for item in self.datapipe:
            yield from self._dive(item, self.unbatch_level)

    def _dive(self, item, level):
        if level == 0 or (level == -1 and not isinstance(item, (list, DataChunk))):
            yield item
            return
        if not isinstance(item, (list, DataChunk)):
            raise IndexError(
                f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe"
            )
        for inner in item:
            yield from self._dive(inner, level if level == -1 else level - 1)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Items with one key together. When the buffer is full its largest group is given out."""

    def __init__(
        self,
        datapipe,
        group_key_fn,
        *,
        keep_key=False,
        buffer_size=10000,
        group_size=None,
        guaranteed_group_size=None,
        drop_remaining=False,
    ) -> None:
        warn_if_unpicklable(group_key_fn)
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise ValueError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is None and group_size is not None and not drop_remaining:
            guaranteed_group_size = 0
        if guaranteed_group_size is not None and group_size is None:
            raise ValueError("group_size must be specified when guaranteed_group_size is set")
        if guaranteed_group_size is not None and guaranteed_group_size > group_size:
            raise ValueError("guaranteed_group_size must be > 0 and <= group_size")
        self.datapipe = datapipe
        self.group_key_fn = group_key_fn
        self.keep_key = keep_key
        self.max_buffer_size = buffer_size
        self.group_size = group_size
        self.guaranteed_group_size = guaranteed_group_size
        self.drop_remaining = drop_remaining
        self._groups = collections.defaultdict(list)

    def reset(self) -> None:
        """Drops the groups of a pass that was begun."""
        self._groups = collections.defaultdict(list)

    def _give(self, key, items) -> DataChunk | tuple[bool, DataChunk]:
        chunk = DataChunk(items)
        return (key, chunk) if self.keep_key else chunk

    def _make_room(self, groups):
        """Takes the largest group out; returns it, or None where it is too small to be given."""
        key = max(groups, key=lambda k: len(groups[k]))
        items = groups.pop(key)
        least = self.guaranteed_group_size
        if least is not None and len(items) < least and not self.drop_remaining:
            raise RuntimeError(
                f"Failed to group items {items}: the buffer is full and they are fewer than "
                "guaranteed_group_size"
            )
        if least is not None and len(items) < least:
            return len(items), None
        return len(items), self._give(key, items)

    def __iter__(self):
        self.reset()
        groups = self._groups
        held = 0
        for item in self.datapipe:
            key = self.group_key_fn(item)
            groups[key].append(item)
            held += 1
            if self.group_size is not None and self.group_size == len(groups[key]):
                held -= self.group_size
                yield self._give(key, groups.pop(key))
            if held == self.max_buffer_size:
                count, given = self._make_room(groups)
                held -= count
                if given is not None:
                    yield given
        for key in list(groups):
            items = groups.pop(key)
            if not (self.drop_remaining and self.group_size is not None):
                yield self._give(key, items)
