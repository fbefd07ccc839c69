"""The HTTP server of a worker: handlers by name that operators and tools call while it trains. It
listens on a Unix socket or on a TCP port, on threads of its own."""

from __future__ import annotations

import json
import os
import socket
import socketserver
import sys
import threading
import traceback
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qsl, urlparse

_INDEX = '<h1>torch.distributed.WorkerServer</h1>\n<a href="/handler/">Handler names</a>\n'


class Request:
    """What was asked: the body and the parameters of the address."""

    def body(self) -> bytes:
        """The bytes that were sent."""
        raise NotImplementedError("Request.body is for subclasses to define")

    def params(self) -> dict[str, str]:
        """The parameters."""
        raise NotImplementedError("Request.params is for subclasses to define")


class Response:
    """Where a handler puts its reply."""

    def set_content(self, content: str | bytes, content_type: str) -> None:
        """The reply and what it is."""
        raise NotImplementedError("Response.set_content is for subclasses to define")

    def set_status(self, status: int) -> None:
        """The HTTP status."""
        raise NotImplementedError("Response.set_status is for subclasses to define")


Handler = Callable[[Request, Response], None]


def _ping(request: Request, response: Response) -> None:
    response.set_content("pong", "text/plain")
    response.set_status(200)


def _dump_traceback(request: Request, response: Response) -> None:
    """Where each thread stands."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():
        parts.append(f"Thread {names.get(ident, ident)}:\n")
        parts.extend(traceback.format_stack(frame))
    response.set_content("".join(parts), "text/plain")
    response.set_status(200)


_handlers: dict[str, Handler] = {"ping": _ping, "dump_traceback": _dump_traceback}


def register_handler(name: str, handler: Handler) -> None:
    """Makes handler(request, response) serve POST /handler/<name>."""
    _handlers[name] = handler


def get_handler(name: str) -> Handler:
    """The handler of that name; ValueError where there is none."""
    if name not in _handlers:
        raise ValueError(f"Failed to find handler {name}")
    return _handlers[name]


def get_handler_names() -> list[str]:
    """The names of all handlers."""
    return list(_handlers)


class _HttpRequest(Request):
    def __init__(self, body: bytes, params: dict[str, str]) -> None:
        self._body, self._params = body, params

    def body(self) -> bytes:
        return self._body

    def params(self) -> dict[str, str]:
        return self._params


class _HttpResponse(Response):
    def __init__(self) -> None:
        self.status, self.content, self.content_type = 200, b"", "text/plain"

    def set_content(self, content: str | bytes, content_type: str) -> None:
        self.content = content.encode() if isinstance(content, str) else content
        self.content_type = content_type

    def set_status(self, status: int) -> None:
        self.status = status


class _Connection(BaseHTTPRequestHandler):
    """One client."""

    protocol_version = "HTTP/1.1"

    def _reply(self, response: _HttpResponse) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.content)))
        self.end_headers()
        self.wfile.write(response.content)

    def do_GET(self) -> None:
        response = _HttpResponse()
        path = urlparse(self.path).path
        if path == "/":
            response.set_content(_INDEX, "text/html")
        elif path == "/handler/":
            response.set_content(json.dumps(get_handler_names()), "application/json")
        else:
            response.set_status(404)
        self._reply(response)

    def do_POST(self) -> None:
        response = _HttpResponse()
        parsed = urlparse(self.path)
        name = parsed.path.removeprefix("/handler/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            get_handler(name)(_HttpRequest(body, dict(parse_qsl(parsed.query))), response)
        except ValueError as error:
            response.set_status(404)
            response.set_content(f"Handler {name} not found: {error}", "text/plain")
        except Exception as error:
            response.set_status(500)
            response.set_content(f"Handler {name} failed: {error}", "text/plain")
        self._reply(response)

    def log_message(self, format: str, *args: object) -> None:
        """Requests leave no line in the worker's output."""

    def address_string(self) -> str:
        return "local"


class _Tcp(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads = True, True


class _TcpSix(_Tcp):
    address_family = socket.AF_INET6


class _Unix(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


class WorkerServer:
    """Serves at host:port, or at a Unix socket where no port is given."""

    def __init__(self, host_or_file: str, port: int = -1) -> None:
        if port < 0:
            if os.path.exists(host_or_file):
                os.remove(host_or_file)
            self._server: socketserver.BaseServer = _Unix(host_or_file, _Connection)
        else:
            kind = _TcpSix if ":" in host_or_file else _Tcp
            self._server = kind((host_or_file, port), _Connection)
        self.port = port if port != 0 else self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def shutdown(self) -> None:
        """Stops serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
