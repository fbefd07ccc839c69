"""The log of calls of torch.distributed that fail."""

import logging

import pytest

import torch.distributed as dist
from torch.distributed.c10d_logger import _c10d_logger, _exception_logger, _time_logger
from torch.distributed.logging_handlers import _log_handlers


@_exception_logger
def _fails(number):
    raise OverflowError(f"{number} is too large")


@_time_logger
def _succeeds():
    return 3


class _Kept(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record.msg)


@pytest.fixture
def kept():
    handler = _Kept()
    _c10d_logger.addHandler(handler)
    yield handler.records
    _c10d_logger.removeHandler(handler)


def test_logger_writes_nowhere_unless_told():
    (handler,) = _log_handlers.values()
    assert type(handler) is logging.NullHandler
    assert handler in _c10d_logger.handlers
    assert not _c10d_logger.propagate


def test_call_that_fails_is_recorded_and_still_raises(kept):
    with pytest.raises(OverflowError):
        _fails(7)
    (record,) = kept
    assert record["func_name"] == "_fails"
    assert record["error"] == "7 is too large"


def test_record_within_a_group_names_rank_and_backend(kept):
    dist.init_process_group("fake", rank=2, world_size=4, store=dist.HashStore())
    try:
        assert _succeeds() == 3
    finally:
        dist.destroy_process_group()
    (record,) = kept
    assert (record["backend"], record["global_rank"], record["world_size"]) == ("fake", "2", "4")
    assert record["time_spent"].endswith("ns")
