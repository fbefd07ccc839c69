"""The base of tests of the tools that reduce failing programs: a program is run with them switched
on, the launcher it leaves is run, and then what that leaves."""

from __future__ import annotations

import dataclasses
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from torch._dynamo import config
from torch._dynamo.test_case import TestCase

__all__ = ["MinifierTestBase", "MinifierTestResult"]


@dataclasses.dataclass
class MinifierTestResult:
    """The programs that were left."""

    minifier_code: str
    repro_code: str

    def _module(self, text: str) -> str:
        found = re.search(r"class Repro\(torch\.nn\.Module\):.*?return [^\n]*", text, re.DOTALL)
        if found is None:
            raise AssertionError("there is no class Repro in the program")
        return re.sub(r"\n\s*\n(\s*\n)*", "\n\n", found.group(0))

    def minifier_module(self) -> str:
        """The class in the launcher."""
        return self._module(self.minifier_code)

    def repro_module(self) -> str:
        """The class in the smallest program."""
        return self._module(self.repro_code)


class MinifierTestBase(TestCase):
    """Runs programs in a folder of their own."""

    DEBUG_DIR: str

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.DEBUG_DIR = tempfile.mkdtemp()
        cls._exit_stack.enter_context(config.patch(debug_dir_root=cls.DEBUG_DIR))

    @classmethod
    def tearDownClass(cls) -> None:
        shutil.rmtree(cls.DEBUG_DIR, ignore_errors=True)
        super().tearDownClass()

    def _settings(self) -> str:
        """The settings of this process for another one."""
        import torch._inductor.config

        lines = []
        for module in (config, torch._inductor.config):
            lines += [
                line
                for line in module.codegen_config().splitlines()
                if "<" not in line and "raise_on_ctx" not in line
            ]
        return "\n".join(lines)

    def _run(self, code: str, *args: str) -> subprocess.CompletedProcess:
        folder = tempfile.mkdtemp(dir=self.DEBUG_DIR)
        path = os.path.join(folder, "program.py")
        with open(path, "w") as file:
            file.write(code)
        self._last_folder = folder
        return subprocess.run(
            [sys.executable, path, *args], cwd=folder, capture_output=True, text=True, check=False
        )

    def _gen_test_code(self, run_code: str, repro_after: str | None, repro_level: int) -> str:
        after = "" if repro_after is None else f"torch._dynamo.config.repro_after = {repro_after!r}"
        return (
            "import torch\nimport torch._dynamo\nimport torch._inductor.config\n"
            f"{self._settings()}\n{after}\ntorch._dynamo.config.repro_level = {repro_level}\n"
            f"{run_code}"
        )

    def _newest(self, name: str) -> str:
        found = glob.glob(os.path.join(self.DEBUG_DIR, "**", name), recursive=True)
        self.assertTrue(found, f"no {name} was written")
        return max(found, key=os.path.getmtime)

    def _run_full_test(
        self,
        run_code: str,
        repro_after: str | None,
        expected_error: str | None,
        *,
        isolate: bool,
        minifier_args: Sequence[str] = (),
    ) -> MinifierTestResult | None:
        """The program fails and leaves a launcher; that makes it smaller; the smaller one fails in
        the same way. With no error expected, nothing is left."""
        level = 4 if expected_error in ("AccuracyError", None) else 3 if not expected_error else 2
        done = self._run(self._gen_test_code(run_code, repro_after, level))
        if expected_error is None:
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("minifier_launcher.py", done.stderr)
            return None
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(expected_error, done.stderr)
        with open(self._newest("minifier_launcher.py")) as file:
            launcher = file.read()
        isolated = ["--isolate"] if isolate else []
        done = self._run(launcher, "minify", *isolated, *minifier_args)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(os.path.join(self._last_folder, "repro.py")) as file:
            smallest = file.read()
        done = self._run(smallest, "run", *[a for a in minifier_args if "accuracy" in a])
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(expected_error, done.stderr)
        return MinifierTestResult(launcher, smallest)
