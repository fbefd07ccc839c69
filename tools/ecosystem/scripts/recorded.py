"""Numbers that the exercises compare with what the peer computed for the same seeds. A test calls
`check(name, values)`; with ECOSYSTEM_RECORD in the environment the values are written to the file
of that name beside the script, without it they are compared with those there."""

import json
import os
import pathlib

import pytest

HERE = pathlib.Path(os.environ.get("ECOSYSTEM_SCRIPTS") or __file__).resolve().parent


class Recorded:
    """The numbers of one script."""

    def __init__(self, name) -> None:
        self.path = HERE / f"{name}.json"
        self.values = json.loads(self.path.read_text()) if self.path.exists() else {}

    def check(self, name, values, rel=2e-4, abs=2e-5) -> None:
        """Values are numbers or lists of numbers; integers must be equal."""
        values = values.tolist() if hasattr(values, "tolist") else values
        values = list(values) if isinstance(values, (list, tuple)) else [values]
        if os.environ.get("ECOSYSTEM_RECORD"):
            self.values[name] = values
            rows = ",\n".join(
                f"{json.dumps(key)}: {json.dumps(row)}" for key, row in self.values.items()
            )
            self.path.write_text(f"{{\n{rows}\n}}\n")
            return
        expected = self.values[name]
        if all(isinstance(value, int) for value in expected):
            assert values == expected
        else:
            close = pytest.approx(expected, rel=rel, abs=abs, nan_ok=True)
            assert values == close, (values, expected)
