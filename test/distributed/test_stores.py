"""Stores: what every kind does, and what the one over TCP bears."""

import os
import random
import socket
import struct
import threading
import time
from datetime import timedelta

import pytest

import torch.distributed as dist

KINDS = ["hash", "file", "tcp", "prefix"]


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    made = {
        "hash": dist.HashStore,
        "file": lambda: dist.FileStore(str(tmp_path / "store"), 1),
        "tcp": lambda: dist.TCPStore("localhost", 0, 1, True),
        "prefix": lambda: dist.PrefixStore("p", dist.HashStore()),
    }[request.param]()
    made.set_timeout(timedelta(seconds=20))
    return made


def test_timeout_may_be_a_float_of_seconds(store):
    store.set_timeout(7.5)
    assert store.timeout == timedelta(seconds=7.5)
    for wrong in (float("nan"), float("inf"), 1e300):
        with pytest.raises(ValueError, match="no duration"):
            store.set_timeout(wrong)
    with pytest.raises(TypeError, match="timedelta"):
        store.set_timeout("7")


def test_get_after_set_returns_the_bytes(store):
    store.set("key", b"\x00\xffvalue")
    store.set("text", "é")
    assert store.get("key") == b"\x00\xffvalue"
    assert store.get("text") == "é".encode()


def test_get_of_a_key_set_later_by_another_thread_waits_for_it(store):
    thread = threading.Timer(0.05, lambda: store.set("late", "1"))
    thread.start()
    assert store.get("late") == b"1"
    thread.join()


def test_add_from_several_threads_counts_every_one(store):
    threads = [
        threading.Thread(target=lambda: [store.add("n", 1) for _ in range(25)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.add("n", 0) == 100


def test_add_to_a_value_that_is_no_number_raises(store):
    store.set("text", "abc")
    with pytest.raises((ValueError, RuntimeError), match="is not a number"):
        store.add("text", 1)


def test_wait_for_a_missing_key_raises_after_the_timeout_and_names_it(store):
    begin = time.monotonic()
    with pytest.raises(dist.DistStoreError, match=r"[Ww]ait timeout after 100ms, keys: .*missing"):
        store.wait(["missing"], timedelta(milliseconds=100))
    assert time.monotonic() - begin < 10


def test_text_of_a_timeout_begins_as_programs_match_it():
    for made, text in (
        (dist.HashStore(), "^Wait timeout"),
        (dist.TCPStore("localhost", 0, 1, True), "^wait timeout after 5ms"),
    ):
        with pytest.raises(dist.DistStoreError, match=text):
            made.wait(["key"], timedelta(milliseconds=5))


def test_compare_set_changes_only_what_is_expected(store):
    assert store.compare_set("k", "other", "new") == b"other"
    assert store.compare_set("k", "", "first") == b"first"
    assert store.compare_set("k", "other", "new") == b"first"
    assert store.compare_set("k", "first", "second") == b"second"
    assert store.get("k") == b"second"


def test_delete_key_says_whether_there_was_one(store):
    store.set("k", "v")
    assert store.delete_key("k") is True
    assert store.delete_key("k") is False
    assert store.check(["k"]) is False


def test_multi_get_append_and_list_of_keys(store):
    store.multi_set(["a", "b"], ["1", "2"])
    store.append("a", "0")
    assert store.multi_get(["a", "b"]) == [b"10", b"2"]
    assert {"a", "b"} <= set(store.list_keys())


@pytest.mark.parametrize("kind", ["hash", "tcp"])
def test_queue_gives_each_value_once_in_order(kind):
    store = dist.HashStore() if kind == "hash" else dist.TCPStore("localhost", 0, 1, True)
    store.queue_push("q", "1")
    store.queue_push("q", "2")
    assert store.queue_len("q") == 2
    assert [store.queue_pop("q"), store.queue_pop("q")] == [b"1", b"2"]
    with pytest.raises(dist.QueueEmptyError):
        store.queue_pop("q", block=False)


def test_file_store_of_the_last_process_removes_the_file(tmp_path):
    path = str(tmp_path / "store")
    first, second = dist.FileStore(path, 1), dist.FileStore(path, 1)
    first.set("k", "v")
    assert second.get("k") == b"v"
    del first
    assert os.path.exists(path)
    del second
    assert not os.path.exists(path)


def test_store_written_in_python_serves_a_prefix_store():
    class Python(dist.Store):
        def __init__(self):
            super().__init__()
            self.values = {}

        def set(self, key, value):
            self.values[key] = value

        def get(self, key):
            return self.values[key]

    inner = Python()
    outer = dist.PrefixStore("p", inner)
    outer.set("k", "v")
    assert inner.values == {"p/k": b"v"} and outer.get("k") == b"v"
    with pytest.raises(RuntimeError, match="Not implemented"):
        outer.num_keys()


def test_tcp_store_serves_a_thread_while_another_waits():
    store = dist.TCPStore("localhost", 0, 1, True)
    waiter = threading.Thread(target=lambda: store.wait(["go"], timedelta(seconds=20)))
    waiter.start()
    store.set("other", "1")
    assert store.get("other") == b"1"
    store.set("go", "1")
    waiter.join(10)
    assert not waiter.is_alive()


def test_tcp_store_client_of_a_server_that_died_raises():
    server = dist.TCPStore("localhost", 0, None, True)
    client = dist.TCPStore("localhost", server.port, None, False, timedelta(seconds=1))
    client.set("k", "v")
    del server
    with pytest.raises(dist.DistNetworkError):
        for _ in range(3):
            client.get("k")


def test_tcp_store_without_a_server_raises_after_the_timeout_and_names_the_host():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    with pytest.raises(dist.DistNetworkError, match=f"timed out after 200ms.*localhost, {port}"):
        dist.TCPStore("localhost", port, None, False, timedelta(milliseconds=200))


def test_tcp_store_with_three_hundred_clients_serves_all():
    server = dist.TCPStore("localhost", 0, None, True)
    clients = [dist.TCPStore("localhost", server.port, None, False) for _ in range(300)]
    for client in clients:
        client.add("n", 1)
    assert server.add("n", 0) == 300


def _hello() -> bytes:
    return b"\x00" + struct.pack("<I", 0x3C85F7CE)


def _text(text: bytes) -> bytes:
    return struct.pack("<q", len(text)) + text


def _requests() -> list[bytes]:
    key, value = _text(b"/k"), _text(b"value")
    keys = struct.pack("<q", 2) + key + key
    return [
        b"\x01" + key + value,
        b"\x02" + key + value + value,
        b"\x03" + struct.pack("<q", 1) + key,
        b"\x04" + key + struct.pack("<q", 1),
        b"\x05" + keys,
        b"\x06" + struct.pack("<q", 1) + keys,
        b"\x07",
        b"\x0a" + struct.pack("<q", 1) + keys,
        b"\x0b" + keys + keys,
        b"\x0d" + b"abcd",
        b"\x10" + key,
    ]


def test_tcp_store_given_mutated_requests_still_serves_others():
    server = dist.TCPStore("localhost", 0, None, True)
    server.set("good", "1")
    choose = random.Random(7)
    for _ in range(1500):
        message = bytearray(_hello() + b"".join(choose.choices(_requests(), k=3)))
        for _ in range(choose.randrange(4)):
            message[choose.randrange(len(message))] = choose.randrange(256)
        if choose.random() < 0.3:
            del message[choose.randrange(len(message)) :]
        with socket.create_connection(("localhost", server.port)) as hostile:
            hostile.sendall(bytes(message))
    assert server.get("good") == b"1"
    assert server.num_keys() < 3000


def test_tcp_store_told_of_a_huge_value_takes_no_memory_for_it():
    server = dist.TCPStore("localhost", 0, None, True)
    with socket.create_connection(("localhost", server.port)) as hostile:
        hostile.sendall(_hello() + b"\x01" + _text(b"/k") + struct.pack("<q", 1 << 62))
        assert hostile.recv(1) == b""
    assert server.check(["k"]) is False


def test_requests_after_the_server_has_ended_fail_at_once():
    server = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    client = dist.TCPStore("localhost", server.port, is_master=False, timeout=timedelta(minutes=5))
    client.set("a", "1")
    del server
    start = time.monotonic()
    for request in (lambda: client.get("a"), lambda: client.set("b", "2"), client.num_keys):
        with pytest.raises(dist.DistNetworkError, match="TCPStore: the server at"):
            request()
    assert time.monotonic() - start < 60
