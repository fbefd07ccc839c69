"""The namespace of the operators that others are written with; `utils` holds what they ask."""

import torch._prims_common as utils

__all__ = ["utils"]
