"""Optimising models for phones: the names. Starting raises NotImplementedError."""

from torch import _later

globals().update(
    _later.names(
        __name__, "LintCode MobileOptimizerType generate_mobile_module_lints optimize_for_mobile"
    )
)
