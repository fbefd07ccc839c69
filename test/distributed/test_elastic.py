"""Agents, rendezvous, timers, events and metrics: what launchers are made of."""

import json
import os
import threading
import time
import urllib.request
from datetime import timedelta

import pytest

from torch.distributed import DistStoreError, HashStore
from torch.distributed.argparse_util import check_env, env
from torch.distributed.elastic import events, metrics, timer
from torch.distributed.elastic.agent.server import WorkerSpec, WorkerState
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std, start_processes
from torch.distributed.elastic.multiprocessing.redirects import redirect_stdout
from torch.distributed.elastic.multiprocessing.tail_log import TailLog
from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousHandlerRegistry,
    RendezvousParameters,
    RendezvousTimeoutError,
)
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler
from torch.distributed.elastic.rendezvous.utils import (
    _matches_machine_hostname,
    _parse_rendezvous_config,
    parse_rendezvous_endpoint,
)
from torch.distributed.elastic.utils import macros
from torch.distributed.elastic.utils.data import CyclingIterator, ElasticDistributedSampler
from torch.distributed.elastic.utils.distributed import get_free_port
from torch.distributed.elastic.utils.store import barrier, synchronize


def _together(count, function):
    """function(i) on count threads; the results, or what they raised."""
    results = [None] * count

    def run(i):
        try:
            results[i] = function(i)
        except Exception as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


# ---- rendezvous
def _handlers(count, least, most, **options):
    store = HashStore()
    params = [
        RendezvousParameters("c10d", "here", "job", least, most, local_addr="127.0.0.1", **options)
        for _ in range(count)
    ]
    return [create_handler(store, C10dRendezvousBackend(store, "job"), one) for one in params]


@pytest.fixture
def nodes():
    made = []

    def make(*args, **kwargs):
        made.extend(_handlers(*args, **kwargs))
        return made

    yield make
    for handler in made:
        handler._stop_heartbeats()


def test_nodes_that_meet_get_different_ranks_and_one_store(nodes):
    handlers = nodes(3, 3, 3, join_timeout=30)
    infos = _together(3, lambda i: handlers[i].next_rendezvous())
    assert sorted(info.rank for info in infos) == [0, 1, 2]
    assert {info.world_size for info in infos} == {3}
    assert len({info.bootstrap_store_info.master_port for info in infos}) == 1
    infos[0].store.set("key", "value")
    assert infos[2].store.get("key") == b"value"


def test_rendezvous_of_too_few_nodes_names_who_joined_when_time_is_over(nodes):
    (handler,) = nodes(1, 2, 2, join_timeout=1)
    with pytest.raises(RendezvousTimeoutError, match="2 to 2 nodes expected"):
        handler.next_rendezvous()


def test_rendezvous_closed_by_one_node_is_closed_for_all(nodes):
    first, second = nodes(2, 1, 2, join_timeout=10)
    first.set_closed()
    assert second.is_closed()
    with pytest.raises(RendezvousClosedError):
        second.next_rendezvous()


def test_node_that_comes_late_is_counted_as_waiting(nodes):
    first, second = nodes(2, 1, 2, join_timeout=20, last_call_timeout=1)
    assert first.next_rendezvous().world_size == 1
    late = threading.Thread(target=second.next_rendezvous, daemon=True)
    late.start()
    deadline = time.monotonic() + 20
    while first.num_nodes_waiting() == 0 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert first.num_nodes_waiting() == 1
    assert first.next_rendezvous().world_size == 2
    late.join(20)


def test_state_is_replaced_only_with_its_token():
    backend = C10dRendezvousBackend(HashStore(), "job")
    assert backend.get_state() is None
    _, token, is_set = backend.set_state(b"one")
    assert is_set and backend.set_state(b"two")[2] is False
    assert backend.set_state(b"two", token)[::2] == (b"two", True)
    assert backend.set_state(b"three", token)[::2] == (b"two", False)


def test_static_rendezvous_keeps_its_rank():
    params = RendezvousParameters(
        "static", f"localhost:{get_free_port()}", "job", 1, 1, rank=0, timeout=20
    )
    handler = get_rendezvous_handler(params)
    assert [handler.next_rendezvous().rank for _ in range(2)] == [0, 0]


def test_unknown_backend_is_refused_by_name():
    with pytest.raises(ValueError, match="'no_such' is not registered"):
        RendezvousHandlerRegistry().create_handler(RendezvousParameters("no_such", "", "job", 1, 1))


@pytest.mark.parametrize(
    ("text", "found"),
    [("host", ("host", 7)), ("a.b:0", ("a.b", 0)), ("[::1]:9", ("::1", 9)), ("", ("localhost", 7))],
)
def test_endpoint_is_split_into_host_and_port(text, found):
    assert parse_rendezvous_endpoint(text, 7) == found


@pytest.mark.parametrize("text", ["a:b", "a:65536", "~", "a :1", ":3"])
def test_endpoint_that_is_none_raises(text):
    with pytest.raises(ValueError, match="rendezvous endpoint"):
        parse_rendezvous_endpoint(text, 7)


def test_options_of_a_rendezvous_are_pairs():
    assert _parse_rendezvous_config(" a = 1,b=2=3") == {"a": "1", "b": "2=3"}
    for wrong in ("a", "a=1,,b=2", "=1"):
        with pytest.raises(ValueError, match="rendezvous configuration"):
            _parse_rendezvous_config(wrong)


def test_loopback_addresses_are_this_machine():
    assert all(_matches_machine_hostname(name) for name in ("localhost", "127.0.0.1", "::1"))
    assert not _matches_machine_hostname("0.0.0.0")


# ---- stores as meeting points
def test_synchronize_returns_what_every_rank_left():
    store = HashStore()
    got = _together(4, lambda i: synchronize(store, f"{i}", i, 4, "meet"))
    assert got == [[b"0", b"1", b"2", b"3"]] * 4


def test_barrier_that_times_out_names_the_missing_rank():
    store = HashStore()
    errors = _together(2, lambda i: barrier(store, 3, "b", 0.2, rank=i, trace_timeout=0.2))
    assert all(isinstance(error, DistStoreError) for error in errors)
    assert any("missing_ranks=[2]" in str(error) for error in errors)


# ---- processes
def test_command_that_fails_is_reported_with_its_output(tmp_path):
    processes = start_processes(
        "w",
        "/bin/sh",
        {0: ("-c", "echo out; exit 3"), 1: ("-c", "sleep 60")},
        {0: {}, 1: {}},
        DefaultLogsSpecs(str(tmp_path), redirects={0: Std.OUT}),
    )
    result = processes.wait(timeout=60, period=0.02)
    assert set(result.failures) == {0} and result.failures[0].exitcode == 3
    with open(result.stdouts[0]) as file:
        assert file.read() == "out\n"
    with pytest.raises(ProcessLookupError):
        os.kill(processes.pids()[1], 0)


def test_streams_by_rank_are_read_from_text():
    assert Std.from_str("3") == Std.ALL
    assert Std.from_str("0:1,1:2") == {0: Std.OUT, 1: Std.ERR}
    with pytest.raises(ValueError, match="says no streams"):
        Std.from_str("0:1,1")


def test_redirect_takes_what_children_write_and_gives_the_stream_back(tmp_path):
    path = str(tmp_path / "out")
    with redirect_stdout(path):
        os.system("echo child")
    os.system("true")
    with open(path) as file:
        assert file.read() == "child\n"


def test_tail_copies_lines_of_files_that_come_later(tmp_path):
    import io

    copied = io.StringIO()
    tail = TailLog("w", {0: str(tmp_path / "log")}, copied, interval_sec=0.01).start()
    (tmp_path / "log").write_text("one\ntwo\n")
    tail.stop()
    assert copied.getvalue() == "[w0]:one\n[w0]:two\n" and tail.stopped()


def _agent(tmp_path, command, **options):
    params = RendezvousParameters(
        "c10d", "localhost:0", "job", 1, 1, local_addr="localhost", is_host=True
    )
    spec = WorkerSpec(
        "w", 2, get_rendezvous_handler(params), entrypoint="/bin/sh", args=("-c", command),
        monitor_interval=0.02, **options,
    )  # fmt: skip
    return LocalElasticAgent(spec, DefaultLogsSpecs(str(tmp_path)))


def test_agent_restarts_workers_until_they_succeed(tmp_path):
    script = f"test -e {tmp_path}/x$RANK || {{ touch {tmp_path}/x$RANK; exit 1; }}"
    agent = _agent(tmp_path, script, max_restarts=3)
    result = agent.run()
    assert result.state is WorkerState.SUCCEEDED and set(result.return_values) == {0, 1}
    assert agent._remaining_restarts < 3
    assert agent._worker_group.spec.rdzv_handler.shutdown()


def test_agent_without_restarts_reports_failures_by_rank(tmp_path):
    result = _agent(tmp_path, "exit $((RANK + 4))", max_restarts=0).run()
    assert result.is_failed()
    assert all(failure.exitcode == rank + 4 for rank, failure in result.failures.items())


def test_macro_of_the_local_rank_is_replaced_in_text_only():
    assert macros.substitute([f"r{macros.local_rank}", 3], "1") == ["r1", 3]


# ---- timers, events, metrics
def _sleeping_child(client, seconds):
    child = os.fork()
    if child == 0:
        timer.configure(client)
        with timer.expires(after=0.2):
            time.sleep(seconds)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_worker_whose_time_is_over_is_killed_and_a_quick_one_is_not(tmp_path):
    path = str(tmp_path / "pipe")
    server = timer.FileTimerServer(path, "job", max_interval=0.02)
    server.start()
    try:
        assert _sleeping_child(timer.FileTimerClient(path), 20) == -9
        assert _sleeping_child(timer.FileTimerClient(path), 0.01) == 0
    finally:
        server.stop()
    with pytest.raises(BrokenPipeError, match="no timer server"):
        timer.FileTimerClient(path).acquire("scope", 1.0)


def test_line_in_the_pipe_that_is_no_request_is_ignored(tmp_path):
    path = str(tmp_path / "pipe")
    server = timer.FileTimerServer(path, "job", max_interval=0.02)
    server.start()
    try:
        with open(path, "wb") as pipe:
            pipe.write(b'garbage\n{"pid": []}\n')
        server.run_once()
        assert server._timers == {}
    finally:
        server.stop()


def test_event_comes_back_from_json():
    event = events.Event("name", events.EventSource.AGENT, metadata={"a": 1})
    assert events.Event.deserialize(event.serialize()) == event
    assert json.loads(str(event))["metadata"] == {"a": 1}


def test_profiled_call_publishes_outcome_and_duration():
    class Kept(metrics.MetricHandler):
        def __init__(self):
            self.values = {}

        def emit(self, metric_data):
            self.values[metric_data.name.rpartition("<locals>.")[2]] = metric_data.value

    kept = Kept()
    metrics.configure(kept, group="mine")

    @metrics.prof(group="mine")
    def fails():
        raise KeyError("x")

    with pytest.raises(KeyError):
        fails()
    assert kept.values["fails.failure"] == 1 and "fails.duration.ms" in kept.values


# ---- data and options
def test_cycling_iterator_goes_through_epochs():
    got = list(CyclingIterator(3, lambda epoch: iter([epoch, epoch * 10]), start_epoch=1))
    assert got == [1, 10, 2, 20]


def test_elastic_sampler_goes_on_from_its_start():
    parts = [list(ElasticDistributedSampler(range(10), 2, rank, 4)) for rank in (0, 1)]
    assert sorted(parts[0] + parts[1]) == [4, 5, 6, 7, 8, 9]


def test_option_takes_its_default_from_the_environment(monkeypatch):
    from argparse import ArgumentParser

    monkeypatch.setenv("PET_FOO", "3")
    monkeypatch.setenv("PET_LOUD", "1")
    parser = ArgumentParser()
    parser.add_argument("--foo", action=env, type=int, default=1)
    parser.add_argument("--loud", action=check_env)
    assert vars(parser.parse_args([])) == {"foo": 3, "loud": True}
    assert parser.parse_args(["--foo", "5"]).foo == 5


def test_worker_server_answers_pings_and_refuses_unknown_handlers():
    from torch._C._distributed_c10d import _get_handler, _WorkerServer

    server = _WorkerServer("127.0.0.1", 0)
    try:
        address = f"http://127.0.0.1:{server.port}/handler/"
        assert urllib.request.urlopen(f"{address}ping", data=b"", timeout=20).read() == b"pong"
        names = json.loads(urllib.request.urlopen(address, timeout=20).read())
        assert {"ping", "dump_traceback"} <= set(names)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{address}none", data=b"", timeout=20)
    finally:
        server.shutdown()
    with pytest.raises(ValueError, match="Failed to find handler none"):
        _get_handler("none")


def test_store_whose_methods_are_attributes_serves_a_prefix_store():
    from torch.distributed import PrefixStore, Store

    class Bare(Store):
        pass

    bare = Bare()
    bare.get = lambda key: f"got {key}".encode()
    assert PrefixStore("p", bare).get("k") == b"got p/k"


def test_timeouts_of_a_rendezvous_must_be_positive():
    from torch.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousTimeout

    with pytest.raises(ValueError, match="join timeout"):
        RendezvousTimeout(join=timedelta(0))
