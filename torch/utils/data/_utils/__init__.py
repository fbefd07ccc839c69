"""Parts of the DataLoader that projects import by these names."""

import atexit
import importlib.util

from torch.utils.data._utils import collate, fetch, pin_memory, signal_handling, worker

__all__ = ["collate", "fetch", "pin_memory", "signal_handling", "worker"]

HAS_NUMPY = importlib.util.find_spec("numpy") is not None
# How many seconds those who wait for workers wait before they look whether these still live.
MP_STATUS_CHECK_INTERVAL = 5.0
# Whether Python is about to end; what it still calls then must not wait for processes.
python_exit_status = False


def _set_python_exit_flag() -> None:
    global python_exit_status
    python_exit_status = True


atexit.register(_set_python_exit_flag)
