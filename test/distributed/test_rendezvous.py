"""URLs by which processes find each other."""

import pytest

import torch.distributed as dist


def test_file_url_gives_store_rank_and_size(tmp_path):
    store, rank, size = next(dist.rendezvous(f"file://{tmp_path}/s?rank=0&world_size=1"))
    store.set("k", "v")
    assert (store.get("k"), rank, size) == (b"v", 0, 1)


def test_tcp_url_of_rank_zero_serves_the_store():
    store, rank, size = next(dist.rendezvous("tcp://localhost:0?rank=0&world_size=1"))
    assert (rank, size) == (0, 1) and store.port > 0


def test_env_url_reads_the_environment(monkeypatch):
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "localhost")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MASTER_PORT", "0")
    with pytest.raises(ValueError, match="MASTER_ADDR expected"):
        monkeypatch.delenv("MASTER_ADDR")
        next(dist.rendezvous("env://"))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("tcp://localhost?rank=0&world_size=1", "port number missing"),
        ("tcp://localhost:1?world_size=1", "rank parameter missing"),
        ("file:///x?rank=0", "size parameter missing"),
        ("file://?rank=0&world_size=1", "path missing"),
    ],
)
def test_url_without_a_part_raises_and_names_it(url, words):
    with pytest.raises(ValueError, match=words):
        next(dist.rendezvous(url))


def test_unknown_scheme_raises():
    with pytest.raises(RuntimeError, match="No rendezvous handler for nope://"):
        dist.rendezvous("nope://x")


def test_rank_given_twice_raises():
    with pytest.raises(AssertionError, match="node-specific arguments"):
        dist.rendezvous("file:///x?rank=0&world_size=1", 0, 1)
