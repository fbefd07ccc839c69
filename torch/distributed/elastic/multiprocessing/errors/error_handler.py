"""Writing and handing on the report of what a worker raised."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import logging
import os
import time
import traceback
from typing import Any

__all__ = ["ErrorHandler"]

logger = logging.getLogger(__name__)


class ErrorHandler:
    """Writes what a worker raised to the file named by TORCHELASTIC_ERROR_FILE."""

    def _get_error_file_path(self) -> str | None:
        return os.environ.get("TORCHELASTIC_ERROR_FILE") or None

    def initialize(self) -> None:
        """Called before the entry point: a crash in C code prints where Python stood."""
        with contextlib.suppress(Exception):
            faulthandler.enable(all_threads=True)

    def record_exception(self, e: BaseException) -> None:
        """Writes the report."""
        path = self._get_error_file_path()
        if path is None:
            return
        self._write(
            path,
            {
                "message": {
                    "message": f"{type(e).__name__}: {e}",
                    "extraInfo": {
                        "py_callstack": "".join(traceback.format_exception(e)),
                        "timestamp": str(int(time.time())),
                    },
                }
            },
        )

    @staticmethod
    def _write(path: str, report: dict[str, Any]) -> None:
        # A reader never sees half a report.
        temporary = f"{path}.{os.getpid()}"
        with open(temporary, "w") as file:
            json.dump(report, file)
        os.replace(temporary, path)

    def override_error_code_in_rootcause_data(
        self, rootcause_error_file: str, rootcause_error: dict[str, Any], error_code: int = 0
    ) -> None:
        """Puts the exit code into a report, in place."""
        message = rootcause_error.get("message")
        if isinstance(message, dict):
            message["errorCode"] = error_code
        else:
            logger.warning("the report %s has no place for an error code", rootcause_error_file)

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Makes another process's report this one's, with the exit code where it is not 0."""
        with open(rootcause_error_file) as file:
            report = json.load(file)
        if error_code:
            self.override_error_code_in_rootcause_data(rootcause_error_file, report, error_code)
        path = self._get_error_file_path()
        if path is None:
            logger.error("no error file is set; the report was:\n%s", json.dumps(report, indent=2))
            return
        self._write(path, report)
