"""A step that leaves items out."""

from torch.utils.data.datapipes._apply import call_on_columns
from torch.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
from torch.utils.data.datapipes.utils.common import warn_if_unpicklable

__all__ = ["FilterIterDataPipe"]


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The items of which filter_fn, or filter_fn of columns, is true."""

    def __init__(self, datapipe, filter_fn, input_col=None) -> None:
        super().__init__()
        warn_if_unpicklable(filter_fn)
        self.datapipe = datapipe
        self.filter_fn = filter_fn
        self.input_col = input_col

    def __iter__(self):
        for data in self.datapipe:
            kept = call_on_columns(self.filter_fn, data, self.input_col)
            if not isinstance(kept, bool):
                raise ValueError(
                    "Boolean output is required for `filter_fn` of FilterIterDataPipe, got "
                    f"{type(kept)}"
                )
            if kept:
                yield data
