"""The comparisons by their other address."""

from torch._numpy.testing import *  # noqa: F403
from torch._numpy.testing import _gen_alignment_data  # noqa: F401
