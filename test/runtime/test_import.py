"""`import torch` in a fresh interpreter is light: nothing heavy is imported with it, and the
process stays small. Its time is measured by tools/measure_import.py, since a clock is no test."""

import subprocess
import sys

import pytest


def fresh(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    "module", ["numpy", "sympy", "networkx", "scipy", "torch.nn", "typing_extensions"]
)
def test_import_torch_does_not_import(module):
    assert fresh(f"import torch, sys; print({module!r} in sys.modules)") == "False"


def test_import_torch_stays_under_60_mb():
    # The peak of this process alone; what getrusage gives remembers the parent's.
    code = (
        "import torch; print([x for x in open('/proc/self/status') if 'VmHWM' in x][0].split()[1])"
    )
    assert int(fresh(code)) / 1024 < 60


def test_import_torch_starts_no_thread():
    code = "import torch, os; print(len(os.listdir('/proc/self/task')))"
    assert fresh(code) == "1"


@pytest.mark.parametrize("first", ["", "import torch"], ids=["alone", "after the main one"])
def test_import_in_a_subinterpreter_raises(first):
    code = f"""
{first}
import _xxsubinterpreters as interpreters
inner = '''
try:
    import torch
except ImportError as error:
    assert "main interpreter" in str(error), error
else:
    raise AssertionError("torch was imported")
'''
interpreters.run_string(interpreters.create(), inner)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
