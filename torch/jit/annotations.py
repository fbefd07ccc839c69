"""Type names that scripted code imports."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union  # noqa: UP035

from torch import Tensor

__all__ = ["Any", "Dict", "List", "NamedTuple", "Optional", "Tensor", "Tuple", "Union"]


class BroadcastingListCls:
    """The type of an argument that is one value or a list of them."""

    def __getitem__(self, types) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingListCls()
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = BroadcastingList1
