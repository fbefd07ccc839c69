"""The end of the interpreter: objects that C++ owns, and threads that are still at work, in a
process of its own that must end with status 0 and without a word."""

import subprocess
import sys

import pytest

PROGRAMS = {
    "a hook that was removed": """
x = torch.rand(3, requires_grad=True)
y = x * 2
x.register_hook(lambda g: None).remove()
""",
    "attributes of a tensor that the graph keeps": """
x = torch.rand(3, requires_grad=True)
x.note = [x]
y = x * x
del x
""",
    "a thread inside an operator": """
a = torch.rand(1200, 1200)
def work():
    while True:
        a @ a
""",
    "a thread inside Python code of a backward pass": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2
    @staticmethod
    def backward(ctx, g):
        sum(range(2000))
        return g * 2
x = torch.rand(200, 200, requires_grad=True)
def work():
    while True:
        y = Double.apply(x)
        y.register_hook(lambda g: g * 1)
        y.sum().backward()
""",
    "a thread inside calls of a module": """
model = torch.nn.Sequential(torch.nn.Linear(50, 50), torch.nn.ReLU())
model.register_forward_hook(lambda m, i, o: None)
x = torch.rand(50, 50)
def work():
    while True:
        model(x)
""",
    "a thread that frees tensors": """
def work():
    while True:
        x = torch.rand(100, requires_grad=True)
        x.register_hook(lambda g: None)
        y = (x * 2).detach().numpy()
        x.self = x
""",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_interpreter_exit_with_work_left_is_quiet(program):
    start = """
if "work" in globals():
    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(0.2)
"""
    code = "import threading, time, torch\n" + program + start
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_child_forked_by_a_thread_ends_like_any_other():
    code = """
import os, threading, torch
a = torch.rand(400, 400)
status = []
def work():
    a @ a
    child = os.fork()
    if child == 0:
        (a @ a).sum().item()
        os._exit(7)
    status.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert status == [7], status
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
