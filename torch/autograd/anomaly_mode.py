"""Anomaly detection: a backward that fails or gives NaN shows the forward call that made it."""

import warnings

from torch import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Switches anomaly detection at once; as a context manager, until the end of the with
    statement."""

    def __init__(self, mode, check_nan=True) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C.set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info) -> None:
        _C.set_anomaly_enabled(self.prev, self.prev_check_nan)


class detect_anomaly:
    """Anomaly detection inside the with statement. Each recorded operator keeps its stack, which
    is slow: for finding errors only."""

    def __init__(self, check_nan=True) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C.set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *exc_info) -> None:
        _C.set_anomaly_enabled(self.prev, self.prev_check_nan)
