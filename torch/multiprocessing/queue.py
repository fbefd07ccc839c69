"""Queues under the names projects import. The pickler of multiprocessing knows tensors, so that its
own queues need no change."""

import multiprocessing.queues
from multiprocessing.reduction import ForkingPickler

__all__ = ["ConnectionWrapper", "Queue", "SimpleQueue"]


class ConnectionWrapper:
    """A connection whose send() and recv() pass tensors by descriptor."""

    def __init__(self, conn) -> None:
        self.conn = conn

    def send(self, obj) -> None:
        """Sends a picklable object."""
        self.conn.send_bytes(ForkingPickler.dumps(obj))

    def recv(self):
        """Waits for an object."""
        return ForkingPickler.loads(self.conn.recv_bytes())

    def __getattr__(self, name):
        if "conn" in self.__dict__:
            return getattr(self.conn, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute 'conn'")


class Queue(multiprocessing.queues.Queue):
    """multiprocessing's queue."""

    def __init__(self, maxsize=0, *, ctx=None) -> None:
        super().__init__(maxsize, ctx=ctx or multiprocessing.get_context())


class SimpleQueue(multiprocessing.queues.SimpleQueue):
    """multiprocessing's simple queue."""

    def __init__(self, *, ctx=None) -> None:
        super().__init__(ctx=ctx or multiprocessing.get_context())
