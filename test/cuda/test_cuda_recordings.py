"""Compiled graphs on CUDA that are recorded and queued as a whole: results are those of the steps
one by one, and no result that somebody holds is written again."""

import gc
import threading

import pytest
from cuda_support import cuda

import torch
from torch._inductor.compile_fx import compile_fx_inner
from torch.fx.experimental.proxy_tensor import make_fx


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def steps(x, w):
    y = torch.relu(x @ w)
    return [(y @ w).tanh() + y.sum(0), y]


def compiled_steps(x, w, function=steps):
    args = [x, w]
    with torch._inductor.config.patch({"triton.cudagraphs": True}):
        return compile_fx_inner(make_fx(function)(*args), args)


def tensors():
    torch.manual_seed(3)
    return torch.randn(4, 4, device=cuda), torch.randn(4, 4, device=cuda)


def agree(got, want):
    for a, b in zip(got, want, strict=True):
        assert torch.equal(a.cpu(), b.cpu())


def states(compiled):
    """What is recorded of each plan; plans for other devices, which logs ask for, have none."""
    return [state for state in compiled.recordings() if state is not None]


def count(compiled):
    ((made, refusal),) = states(compiled)
    assert refusal == ""
    return made


def test_the_second_call_is_recorded_and_later_ones_replay_it():
    x, w = tensors()
    run = compiled_steps(x, w)
    for call in range(6):
        x.add_(1)
        agree(run([x, w]), steps(x, w))
        assert count(run) == min(call, 1)


def test_inputs_that_lie_elsewhere_are_copied():
    x, w = tensors()
    run = compiled_steps(x, w)
    kept = []
    for _ in range(6):
        x = torch.randn(4, 4, device=cuda)
        kept.append(x)
        agree(run([x, w]), steps(x, w))
    assert count(run) <= 2


def test_results_in_use_are_never_written_again():
    x, w = tensors()
    run = compiled_steps(x, w)
    held, wanted = [], []
    for call in range(9):
        x.add_(call)
        held.append(run([x, w])[call % 2])
        wanted.append(steps(x, w)[call % 2].cpu())
    for got, want in zip(held, wanted, strict=True):
        assert torch.equal(got.cpu(), want)
    assert count(run) == 4
    view = held[-1][1:]
    want = view.cpu()
    del held
    gc.collect()
    for _ in range(4):
        x.add_(1)
        agree(run([x, w]), steps(x, w))
    assert torch.equal(view.cpu(), want)


def test_results_that_are_inputs_or_views_of_them_stay_so():
    def function(x, w):
        return [x, w.t(), x[1:], x @ w, (x @ w) + 1, torch.sin(x), torch.cos(w)]

    x, w = tensors()
    run = compiled_steps(x, w, function)
    for _ in range(4):
        x = torch.randn(4, 4, device=cuda)
        got = run([x, w])
        agree(got, function(x, w))
        assert got[0] is x and got[1].data_ptr() == w.data_ptr()
        assert got[2].data_ptr() == x[1:].data_ptr()


def test_an_input_that_is_written_is_written_at_every_call():
    def function(x, w):
        y = torch.relu(x @ w)
        w.add_(y.sum(0))
        return [y.tanh() @ w]

    x, w = tensors()
    other = w.clone()
    args = [x, w]
    with torch._inductor.config.patch({"triton.cudagraphs": True}):
        run = compile_fx_inner(make_fx(function)(*[a.clone() for a in args]), args)
    for _ in range(5):
        agree(run([x, w]), function(x, other))
        assert torch.equal(w.cpu(), other.cpu())
    assert count(run) == 1


def test_a_written_input_that_moves_is_not_recorded():
    def function(x, w):
        x.mul_(2)
        return [x @ w, torch.relu(x), torch.sin(w) @ x, x.sum(0)]

    x, w = tensors()
    args = [x.clone(), w]
    with torch._inductor.config.patch({"triton.cudagraphs": True}):
        run = compile_fx_inner(make_fx(function)(x.clone(), w), args)
    kept = []
    for _ in range(5):
        mine, theirs = x.clone(), x.clone()
        kept.append((mine, theirs))
        agree(run([mine, w]), function(theirs, w))
        assert torch.equal(mine.cpu(), theirs.cpu())
    ((made, why),) = states(run)
    assert made == 0 and "written" in why


def test_random_numbers_of_replays_are_those_of_eager():
    def function(x, w):
        y = torch.nn.functional.dropout(x @ w, 0.5, True)
        return torch.nn.functional.dropout(y.relu() @ w, 0.3, True) + y

    x, w = tensors()
    found = []
    for run in (function, torch.compile(function, mode="reduce-overhead")):
        torch.cuda.manual_seed(5)
        found.append([run(x, w).cpu() for _ in range(5)] + [torch.rand(3, device=cuda).cpu()])
    for got, want in zip(*found, strict=True):
        assert torch.equal(got, want)


def test_a_training_step_is_recorded_forward_and_backward():
    def losses(mode):
        torch.manual_seed(1)
        model = torch.nn.Sequential(
            torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8), torch.nn.Linear(8, 3)
        ).to(cuda)
        run = torch.compile(model, mode=mode) if mode else model
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(5, 6).to(cuda)
        y = torch.tensor([0, 1, 2, 1, 0]).to(cuda)
        found = []
        for _ in range(6):
            loss = torch.nn.functional.cross_entropy(run(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    assert losses("reduce-overhead") == pytest.approx(losses(None), rel=1e-6)


def test_gradients_add_up_over_replays():
    torch.manual_seed(1)
    linear = torch.nn.Linear(4, 4).to(cuda)
    twin = torch.nn.Linear(4, 4).to(cuda)
    twin.load_state_dict(linear.state_dict())
    x = torch.randn(3, 4).to(cuda)

    def function(module, x):
        return (torch.relu(module(x)).tanh() * module(x).sigmoid()).sum()

    run = torch.compile(function, mode="reduce-overhead")
    for _ in range(4):
        run(linear, x).backward()
        function(twin, x).backward()
    torch.testing.assert_close(linear.weight.grad.cpu(), twin.weight.grad.cpu())


def test_work_that_waits_for_the_device_is_run_as_it_is():
    def function(x, w):
        found = torch.ops.aten.index_put(x @ w, [x > 0], torch.ones((), device=cuda))
        return [found, torch.sin(x @ w)]

    x, w = tensors()
    run = compiled_steps(x, w, function)
    for _ in range(4):
        agree(run([x, w]), function(x, w))
    ((made, why),) = states(run)
    assert made == 0 and "900" in why


def test_operators_of_other_libraries_are_called_each_time():
    calls = []

    @torch.library.custom_op("recordings_test::counts", mutates_args=())
    def counts(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x + 1

    counts.register_fake(torch.empty_like)

    def function(x, w):
        return [torch.ops.recordings_test.counts(x @ w), torch.sin(x @ w)]

    x, w = tensors()
    run = compiled_steps(x, w, function)
    calls.clear()
    for _ in range(4):
        run([x, w])
    assert len(calls) == 4
    assert states(run) == [(0, "recordings_test::counts is an operator of another library")]


def test_small_graphs_are_recorded_unless_told_otherwise():
    x, w = tensors()

    def function(x, w):
        for _ in range(4):
            x = torch.relu(x @ w)
        return [x]

    made = []
    for wish in (True, False):
        with torch._inductor.config.patch({"triton.record_launch_bound": wish}):
            run = compile_fx_inner(make_fx(function)(x, w), [x, w])
        for _ in range(3):
            agree(run([x, w]), function(x, w))
        made.append(states(run))
    assert made == [[(1, "")], []]


def test_threads_share_recordings_without_mixing_results():
    x, w = tensors()
    run = compiled_steps(x, w)
    wrong = []

    def work(seed):
        mine = torch.full((4, 4), float(seed), device=cuda)
        want = [t.cpu() for t in steps(mine, w)]
        for _ in range(20):
            got = [t.cpu() for t in run([mine, w])]
            if not all(torch.equal(a, b) for a, b in zip(got, want, strict=True)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_resized_result_is_not_written_again():
    x, w = tensors()
    run = compiled_steps(x, w)
    for _ in range(3):
        got = run([x, w])[0]
        got.untyped_storage().resize_(0)
        del got
        agree(run([x, w]), steps(x, w))
