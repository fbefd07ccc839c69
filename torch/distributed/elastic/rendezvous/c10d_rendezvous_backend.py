"""The state of a rendezvous in a store: one key, changed by compare-and-set. The value that was
read is the token with which it may be replaced."""

from __future__ import annotations

import binascii
import logging
import os
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from torch.distributed import FileStore, Store, TCPStore
from torch.distributed.elastic.events import NodeState, construct_and_record_rdzv_event
from torch.distributed.elastic.rendezvous.api import (
    RendezvousConnectionError,
    RendezvousError,
    RendezvousParameters,
    RendezvousStateError,
)
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend, Token
from torch.distributed.elastic.rendezvous.utils import (
    _matches_machine_hostname,
    parse_rendezvous_endpoint,
)

__all__ = ["C10dRendezvousBackend", "create_backend"]

logger = logging.getLogger(__name__)

DEFAULT_PORT = 29400

_UNREACHABLE = "The connection to the C10d store has failed. See inner exception for details."


class C10dRendezvousBackend(RendezvousBackend):
    """Keeps the state in a store, as base64 text."""

    def __init__(self, store: Store, run_id: str) -> None:
        if not run_id:
            raise ValueError("The run id must be a non-empty string.")
        self._store, self._key = store, f"torch.rendezvous.{run_id}"

    @property
    def name(self) -> str:
        """c10d"""
        return "c10d"

    def get_state(self) -> tuple[bytes, Token] | None:
        """The state and its token; None before the first."""
        if not self._ask("check", [self._key]):
            return None
        return self._decoded(self._ask("get", self._key))

    def set_state(
        self, state: bytes, token: Token | None = None
    ) -> tuple[bytes, Token, bool] | None:
        """Replaces the state that the token stands for. Returns the state there is now, its token,
        and whether it is ours."""
        if token is not None and not isinstance(token, bytes):
            current = self.get_state()
            return None if current is None else (*current, False)
        new = b64encode(state)
        # An empty expectation stands for a key that does not exist yet.
        there = self._ask("compare_set", self._key, (token or b"").decode(), new.decode())
        if not there:
            return None
        return (*self._decoded(there), there == new)

    def _ask(self, method: str, *args: Any) -> Any:
        try:
            return getattr(self._store, method)(*args)
        except (ValueError, RuntimeError, TimeoutError) as error:
            raise RendezvousConnectionError(_UNREACHABLE) from error

    @staticmethod
    def _decoded(text: bytes) -> tuple[bytes, Token]:
        try:
            return b64decode(text, validate=True), text
        except binascii.Error as error:
            raise RendezvousStateError(
                "The state object is corrupt. See inner exception for details."
            ) from error


def _tcp_store(params: RendezvousParameters) -> TCPStore:
    host, port = parse_rendezvous_endpoint(params.endpoint, DEFAULT_PORT)
    told = params.get_as_bool("is_host")
    seconds = params.get_as_int("read_timeout", 60)
    if seconds is None or seconds <= 0:
        raise ValueError("The read timeout must be a positive integer.")
    serves = _matches_machine_hostname(host) if told is None else told
    # Where nobody said who serves, several processes of one machine try and the first does.
    attempts = [True, False] if serves and told is None else [serves]
    problem: Exception | None = None
    for is_server in attempts:
        try:
            return TCPStore(
                host,
                port,
                is_master=is_server,
                multi_tenant=True,
                timeout=timedelta(seconds=seconds),
            )
        except (ValueError, RuntimeError, TimeoutError) as error:
            problem = error
    raise RendezvousConnectionError(_UNREACHABLE) from problem


def _file_store(params: RendezvousParameters) -> FileStore:
    path = params.endpoint
    if not path:
        try:
            handle, path = tempfile.mkstemp()
        except OSError as error:
            raise RendezvousError(
                "The file creation for C10d store has failed. See inner exception for details."
            ) from error
        os.close(handle)
    try:
        return FileStore(path)
    except (ValueError, RuntimeError) as error:
        raise RendezvousConnectionError(_UNREACHABLE) from error


_STORES = {"file": _file_store, "tcp": _tcp_store}


@contextmanager
def _failures_recorded(run_id: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        construct_and_record_rdzv_event(run_id, text, NodeState.FAILED)
        raise


def create_backend(params: RendezvousParameters) -> tuple[C10dRendezvousBackend, Store]:
    """The backend and its store. Options: store_type (tcp, file), is_host, read_timeout."""
    with _failures_recorded(params.run_id):
        make = _STORES.get(str(params.get("store_type", "tcp")).strip().lower())
        if make is None:
            raise ValueError("Invalid store type given. Currently only supports file and tcp.")
        store = make(params)
        return C10dRendezvousBackend(store, params.run_id), store
