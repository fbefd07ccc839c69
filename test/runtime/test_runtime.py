"""State of the process and the thread: grad and inference mode, defaults, threads, warnings,
signals, the GIL."""

import signal
import threading
import time
import warnings

import pytest

import torch


def test_grad_mode_belongs_to_the_thread():
    seen = []
    with torch.no_grad():
        assert not torch.is_grad_enabled()
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True] and torch.is_grad_enabled()


def test_inference_mode_makes_inference_tensors():
    with torch.inference_mode():
        t = torch.ones(2)
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
        with torch.inference_mode(False):
            assert torch.is_grad_enabled() and not torch.ones(2).is_inference()
    assert t.is_inference() and not torch.is_inference_mode_enabled()
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = t._version
    with pytest.raises(RuntimeError, match="inference tensor outside InferenceMode is not allowed"):
        t.requires_grad = True


def test_default_dtype():
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        assert torch.zeros(1).dtype is torch.float64
        with pytest.raises(
            TypeError, match="only floating-point types are supported as the default type"
        ):
            torch.set_default_dtype(torch.int64)
    finally:
        torch.set_default_dtype(before)


def test_thread_counts_are_checked():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert torch.get_num_threads() == 1
        for bad in (0, -1, 2**40):
            with pytest.raises(RuntimeError):
                torch.set_num_threads(bad)
        with pytest.raises(TypeError):
            torch.set_num_threads("a")
    finally:
        torch.set_num_threads(before)


def test_warning_turned_into_error_reaches_the_caller():
    out = torch.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="was resized"):
            torch.add(torch.ones(2), 1, out=out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.add(torch.ones(2), 1, out=out).tolist() == [2, 2]


def test_signal_interrupts_a_long_operator():
    class Tick(Exception):
        pass

    def handler(*args):
        raise Tick

    x = torch.full((20_000_000,), 3.7)
    old = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Tick):
            for _ in range(200):
                x.lgamma()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def test_long_operators_release_the_gil():
    x = torch.full((10_000_000,), 3.7)
    count, stop = [0], threading.Event()

    def spin():
        while not stop.is_set():
            count[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=spin)
    thread.start()
    before = count[0]
    x.lgamma()
    progress = count[0] - before
    stop.set()
    thread.join()
    assert progress > 10


def test_out_of_memory_is_an_exception():
    with pytest.raises((torch.OutOfMemoryError, RuntimeError)):
        torch.empty(2**60, dtype=torch.uint8)
    assert issubclass(torch.OutOfMemoryError, RuntimeError)
