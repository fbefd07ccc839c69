"""Steps that call a function on each item."""

from __future__ import annotations

from torch.utils.data._utils.collate import default_collate
from torch.utils.data.datapipes._apply import apply_to_columns
from torch.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe, length_of
from torch.utils.data.datapipes.utils.common import warn_if_unpicklable

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """fn of each item, or of columns of it."""

    def __init__(self, datapipe, fn, input_col=None, output_col=None) -> None:
        super().__init__()
        warn_if_unpicklable(fn)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.datapipe = datapipe
        self.fn = fn
        self.input_col = input_col
        self.output_col = output_col

    def __iter__(self):
        for data in self.datapipe:
            yield apply_to_columns(self.fn, data, self.input_col, self.output_col)

    def __len__(self) -> int:
        return length_of(self, self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches collated."""

    def __init__(self, datapipe, conversion=default_collate, collate_fn=None) -> None:
        super().__init__(datapipe, fn=conversion if collate_fn is None else collate_fn)
