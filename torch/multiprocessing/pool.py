"""The pool under the name projects import."""

from multiprocessing.pool import Pool

__all__ = ["Pool"]
