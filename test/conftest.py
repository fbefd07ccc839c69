"""What every test process needs before its first test, and fixtures that several files use."""

import signal

import pytest

# A shell that starts the tests in the background leaves SIGINT ignored, and so would every process
# the tests start: Ctrl-C, which some of them send, would do nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def float64_default():
    """Numbers become float64 tensors."""
    import torch

    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
