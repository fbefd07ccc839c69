"""torch.monitor: events reach the handlers that are registered, and statistics their windows."""

from datetime import datetime, timedelta

import pytest

from torch import monitor


@pytest.fixture
def events():
    seen = []
    handle = monitor.register_event_handler(seen.append)
    yield seen
    monitor.unregister_event_handler(handle)


def test_events_reach_a_handler_until_it_is_unregistered():
    seen = []
    handle = monitor.register_event_handler(seen.append)
    event = monitor.Event("some", datetime.now(), {"x": 1})
    monitor.log_event(event)
    monitor.unregister_event_handler(handle)
    monitor.log_event(event)
    assert seen == [event]


def test_a_window_ends_with_its_last_sample_and_is_logged(events):
    kinds = (monitor.Aggregation.SUM, monitor.Aggregation.COUNT, monitor.Aggregation.MEAN)
    stat = monitor.Stat("loss", kinds, timedelta(hours=1), 3)
    stat.add(1)
    stat.add(2)
    assert stat.count == 2 and stat.get() == {}
    stat.add(6)
    assert stat.count == 0
    assert stat.get() == {kinds[0]: 9, kinds[1]: 3, kinds[2]: 3.0}
    (event,) = events
    assert event.name == monitor.STAT_EVENT
    assert event.data == {"loss.sum": 9, "loss.count": 3, "loss.mean": 3.0}


def test_a_window_that_is_over_ends_at_the_next_value(events):
    stat = monitor.Stat("x", (monitor.Aggregation.MAX, monitor.Aggregation.MIN), timedelta(0))
    stat.add(2)
    stat.add(5)
    assert [event.data for event in events] == [{"x.max": 2, "x.min": 2}]


def test_statistics_go_to_a_summary_writer(events):
    class Writer:
        rows = []

        def add_scalar(self, tag, scalar_value, walltime):
            self.rows.append((tag, scalar_value, walltime))

    when = datetime(2026, 1, 2)
    handler = monitor.TensorboardEventHandler(Writer())
    handler(monitor.Event(monitor.STAT_EVENT, when, {"a.sum": 3.0}))
    handler(monitor.Event("other", when, {"b": 1.0}))
    assert Writer.rows == [("a.sum", 3.0, when.timestamp())]


def test_waits_are_counted_by_name():
    for _ in range(2):
        with monitor._WaitCounter("test_waits").guard():
            pass
    count, seconds = monitor._WaitCounter.totals["test_waits"]
    assert count == 2 and seconds >= 0
