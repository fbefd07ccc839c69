"""Parsing of endpoints and options, whether a name means this machine, and a periodic timer."""

from __future__ import annotations

import ipaddress
import random
import re
import socket
import threading
import time
from collections.abc import Callable
from datetime import timedelta

__all__ = ["parse_rendezvous_endpoint"]

_HOST = re.compile(r"[\w.:-]+")


def _parse_rendezvous_config(config_str: str) -> dict[str, str]:
    """The options in "key1=value1,key2=value2"."""
    options: dict[str, str] = {}
    if not config_str.strip():
        return options
    for pair in config_str.split(","):
        key, _, value = (part.strip() for part in pair.partition("="))
        if not key:
            raise ValueError(
                "The rendezvous configuration string must be in format "
                "<key1>=<value1>,...,<keyN>=<valueN>."
            )
        if not value:
            raise ValueError(
                f"The rendezvous configuration option '{key}' must have a value specified."
            )
        options[key] = value
    return options


def _try_parse_port(port_str: str) -> int | None:
    """The number, None where the text is anything else."""
    return int(port_str) if re.fullmatch(r"[0-9]+", port_str) else None


def parse_rendezvous_endpoint(endpoint: str | None, default_port: int) -> tuple[str, int]:
    """Host and port of "host", "host:port" or "[IPv6]:port"; localhost where it is empty."""
    text = (endpoint or "").strip()
    if not text:
        return "localhost", default_port
    host, separator, port_text = text, "", ""
    if not text.endswith("]"):
        host, separator, port_text = text.rpartition(":") if ":" in text else (text, "", "")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    port = _try_parse_port(port_text) if separator else default_port
    if port is None or port >= 1 << 16:
        raise ValueError(
            f"The port number of the rendezvous endpoint '{endpoint}' must be an integer between "
            "0 and 65536."
        )
    if not _HOST.fullmatch(host):
        raise ValueError(
            f"The hostname of the rendezvous endpoint '{endpoint}' must be a dot-separated list "
            "of labels, an IPv4 address, or an IPv6 address."
        )
    return host, port


def _addresses(host: str) -> set[str]:
    try:
        found = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)
    except (OSError, UnicodeError):
        return set()
    return {entry[4][0] for entry in found}


def _matches_machine_hostname(host: str) -> bool:
    """True where the name or address is one of this machine."""
    if host == "localhost":
        return True
    try:
        if ipaddress.ip_address(host).is_loopback:
            return True
    except ValueError:
        pass  # A name.
    own = socket.gethostname()
    if host in (own, socket.getfqdn()):
        return True
    return not _addresses(host).isdisjoint(_addresses(own))


def _delay(seconds: float | tuple[float, float]) -> None:
    """Sleeps so long, or for a random time between the two."""
    time.sleep(random.uniform(*seconds) if isinstance(seconds, tuple) else seconds)


def _call_every(interval: float, stop: threading.Event, call: Callable[[], object]) -> None:
    while not stop.wait(interval):
        call()


class _PeriodicTimer:
    """Calls a function on a thread at intervals, until it is cancelled or deleted. The thread holds
    no reference to the timer, so that deleting it works."""

    def __init__(
        self, interval: timedelta, function: Callable, *args: object, **kwargs: object
    ) -> None:
        self._interval = interval.total_seconds()
        self._call = lambda: function(*args, **kwargs)
        self._name: str | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __del__(self) -> None:
        self.cancel()

    def _must_be_new(self) -> None:
        if self._thread is not None:
            raise RuntimeError("The timer has already started.")

    @property
    def name(self) -> str | None:
        """The name of the thread."""
        return self._name

    def set_name(self, name: str) -> None:
        """Names the thread; before it starts."""
        self._must_be_new()
        self._name = name

    def start(self) -> None:
        """Starts the thread, once."""
        self._must_be_new()
        self._thread = threading.Thread(
            target=_call_every,
            args=(self._interval, self._stop, self._call),
            name=self._name or "PeriodicTimer",
            daemon=True,
        )
        self._thread.start()

    def cancel(self) -> None:
        """Stops the thread and waits for its end. Calling it again does nothing."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
