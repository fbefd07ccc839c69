"""Type names that scripted code imports."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union  # noqa: UP035

from torch import Tensor

__all__ = ["Any", "Dict", "List", "NamedTuple", "Optional", "Tensor", "Tuple", "Union"]
