"""Where records of torch.distributed go, by the name of the destination."""

import logging

__all__: list[str] = []

_log_handlers: dict[str, logging.Handler] = {"default": logging.NullHandler()}
