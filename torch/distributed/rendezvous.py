"""How processes find each other: a URL says where the store is. Each scheme has a handler that
yields the store, this process's rank and the number of processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from urllib.parse import ParseResult, parse_qsl, urlencode, urlparse, urlunparse

from torch._C._distributed_c10d import FileStore, PrefixStore, Store, TCPStore
from torch.distributed.constants import default_pg_timeout

__all__ = ["register_rendezvous_handler", "rendezvous"]

Found = tuple[Store, int, int]
Handler = Callable[..., Iterator[Found]]
_handlers: dict[str, Handler] = {}


def register_rendezvous_handler(scheme: str, handler: Handler) -> None:
    """Makes handler(url, timeout=..., **kwargs) serve URLs of that scheme."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def _query(parsed: ParseResult) -> dict[str, str]:
    return dict(parse_qsl(parsed.query))


def _with_query(url: str, rank: int, world_size: int) -> str:
    """The URL with rank and size as parameters, where they are given."""
    if rank == -1 and world_size == -1:
        return url
    parsed = urlparse(url)
    query = _query(parsed)
    if "rank" in query or "world_size" in query:
        raise AssertionError(
            f"The url: {url} has node-specific arguments(rank, world_size) already."
        )
    if rank != -1:
        query["rank"] = str(rank)
    if world_size != -1:
        query["world_size"] = str(world_size)
    # urlunparse drops the slashes of an empty host.
    text = urlunparse(parsed._replace(query=urlencode(query)))
    if "://" in url and "://" not in text:
        text = text.replace(":", "://", 1)
    return text


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: object) -> Iterator[Found]:
    """An iterator of (store, rank, world_size) for a URL."""
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, int):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, int):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")
    scheme = urlparse(url).scheme
    if scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {scheme}://")
    return _handlers[scheme](_with_query(url, rank, world_size), **kwargs)


def _store_from_options(options: object, rank: int) -> Store:
    """The store of the options of an RPC backend."""
    return next(rendezvous(options.init_method, rank, 1 << 20))[0]


def _error(scheme: str, what: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {what}")


def _number(query: dict[str, str], name: str, words: str, scheme: str) -> int:
    if name not in query:
        raise _error(scheme, f"{words} parameter missing")
    return int(query[name])


def _file_handler(
    url: str, timeout: timedelta = default_pg_timeout, **kwargs: object
) -> Iterator[Found]:
    parsed = urlparse(url)
    query = _query(parsed)
    if not parsed.path:
        raise _error("file", "path missing")
    rank = _number(query, "rank", "rank", "file")
    size = _number(query, "world_size", "world size", "file")
    store = FileStore(parsed.path, size)
    store.set_timeout(timeout)
    yield store, rank, size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _uses_libuv(query: dict[str, str]) -> bool:
    word = query.get("use_libuv", os.environ.get("USE_LIBUV", "1"))
    return word == "1"


def _tcp_store(
    host: str, port: int, rank: int, size: int, timeout: timedelta, use_libuv: bool
) -> Store:
    if not 0 <= port < 1 << 16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    # Under an elastic launcher the agent serves the store, and each attempt has its own keys.
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == str(True):
        attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
        served = TCPStore(host, port, size, False, timeout, use_libuv=use_libuv)
        return PrefixStore(f"/worker/attempt_{attempt}", served)
    return TCPStore(host, port, size, rank == 0, timeout, multi_tenant=True, use_libuv=use_libuv)


def _tcp_handler(
    url: str, timeout: timedelta = default_pg_timeout, **kwargs: object
) -> Iterator[Found]:
    parsed = urlparse(url)
    query = _query(parsed)
    if parsed.port is None:
        raise _error("tcp", "port number missing")
    rank = _number(query, "rank", "rank", "tcp")
    size = _number(query, "world_size", "world size", "tcp")
    host = parsed.hostname or ""
    store = _tcp_store(host, parsed.port, rank, size, timeout, _uses_libuv(query))
    yield store, rank, size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _from_env(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise _error("env", f"environment variable {name} expected, but not set")
    return value


def _env_handler(
    url: str, timeout: timedelta = default_pg_timeout, **kwargs: object
) -> Iterator[Found]:
    query = _query(urlparse(url))
    rank = int(query["rank"] if "rank" in query else _from_env("RANK"))
    size = int(query["world_size"] if "world_size" in query else _from_env("WORLD_SIZE"))
    host, port = _from_env("MASTER_ADDR"), int(_from_env("MASTER_PORT"))
    store = _tcp_store(host, port, rank, size, timeout, _uses_libuv(query))
    yield store, rank, size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


register_rendezvous_handler("tcp", _tcp_handler)
register_rendezvous_handler("env", _env_handler)
register_rendezvous_handler("file", _file_handler)
