"""What other projects' programs found: each test is the smallest form of something that worked on
PyTorch and did not here."""

import inspect

import pytest

import torch
import torch.nn.functional as F
from torch import nn


def test_batch_norm_called_twice_before_backward():
    norm = nn.BatchNorm1d(3)
    x = torch.randn(4, 3, requires_grad=True)
    (norm(x).square().sum() + norm(x * 2).square().sum()).backward()
    once = nn.BatchNorm1d(3)
    y = x.detach().requires_grad_()
    once(y).square().sum().backward()
    other = nn.BatchNorm1d(3)
    z = x.detach().requires_grad_()
    other(z * 2).square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad + z.grad)


def test_batch_norm_backward_uses_the_statistics_of_its_forward():
    norm = nn.BatchNorm1d(3).eval()
    with torch.no_grad():
        norm.running_var.fill_(4.0)
    x = torch.randn(4, 3, requires_grad=True)
    y = norm(x)
    norm.train()
    norm(torch.randn(8, 3) * 10)
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.full((4, 3), (4.0 + norm.eps) ** -0.5))


def test_batch_norm_second_order_in_eval():
    norm = nn.BatchNorm1d(3).double().eval()
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(norm, (x,))


def test_embedding_result_can_be_written_to():
    table = nn.Embedding(5, 4)
    out = table(torch.tensor([[0, 1], [1, 3]]))
    assert not out._is_view()
    out += 1.0
    out.sum().backward()
    assert table.weight.grad.sum() == 16


@pytest.mark.parametrize("k", [1, 2, 3])
def test_rot90_result_can_be_written_to(k):
    x = torch.randn(2, 3, requires_grad=True)
    out = torch.rot90(x, k)
    assert not out._is_view()
    out.mul_(2.0).sum().backward()
    assert (x.grad == 2).all()


def test_where_with_a_byte_condition_differentiates():
    x = torch.randn(3, requires_grad=True)
    y = torch.randn(3, requires_grad=True)
    torch.where(torch.tensor([1, 0, 1], dtype=torch.uint8), x, y).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 1.0]
    assert y.grad.tolist() == [0.0, 1.0, 0.0]


def test_numpy_without_recording():
    np = pytest.importorskip("numpy")
    parameter = nn.Parameter(torch.ones(3))
    with pytest.raises(RuntimeError, match="requires grad"):
        parameter.numpy()
    with torch.no_grad():
        assert parameter.view(-1).numpy().tolist() == [1.0, 1.0, 1.0]
        assert np.asarray(parameter).sum() == 3


class _Wrapper(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self._inner = inner

    def __getattr__(self, name):
        if name == "_inner":
            return super().__getattr__("_inner")
        return getattr(super().__getattr__("_inner"), name)


def test_module_getattr_can_be_called():
    wrapper = _Wrapper(nn.Linear(2, 3))
    assert wrapper.in_features == 2
    assert wrapper.weight is nn.Module.__getattr__(wrapper, "_inner").weight
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'absent'"):
        nn.Module.__getattr__(nn.Linear(2, 2), "absent")
    with pytest.raises(AttributeError, match="absent"):
        wrapper.absent  # noqa: B018


def test_getattr_given_to_a_module_class_later():
    class Plain(nn.Module):
        pass

    module = Plain()
    assert not hasattr(module, "anything")
    Plain.__getattr__ = lambda self, name: f"made {name}"
    assert module.anything == "made anything"
    del Plain.__getattr__
    module.layer = nn.Linear(1, 1)
    assert module.layer.in_features == 1
    assert not hasattr(module, "anything")


@pytest.mark.parametrize("first", [True, False])
def test_init_subclass_of_a_mixin_runs(first):
    class Mixin:
        def __init_subclass__(cls, tag=None, **kwargs):
            super().__init_subclass__(**kwargs)
            cls.tag = tag

    bases = (Mixin, nn.Module) if first else (nn.Module, Mixin)
    made = type(nn.Module)("Made", bases, {}, tag=7)
    assert made.tag == 7
    made().register_buffer("x", torch.zeros(1))


def test_signatures_of_modules():
    class Called(nn.Module):
        def __call__(self, x, y=3):
            return x

    assert str(inspect.signature(nn.Linear(2, 2))) == "(*args, **kwargs)"
    assert str(inspect.signature(Called())) == "(x, y=3)"
    assert list(inspect.signature(nn.Linear).parameters)[:3] == [
        "in_features",
        "out_features",
        "bias",
    ]


def test_optimizer_wrapper_without_init():
    class Wrapper(torch.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner

        def step(self, closure=None):
            return self.inner.step(closure)

    parameter = nn.Parameter(torch.ones(1))
    inner = torch.optim.SGD([parameter], lr=0.5)
    parameter.grad = torch.ones(1)
    seen = []
    handle = torch.optim.optimizer.register_optimizer_step_post_hook(
        lambda optimizer, args, kwargs: seen.append(optimizer)
    )
    try:
        Wrapper(inner).step()
    finally:
        handle.remove()
    assert parameter.item() == 0.5
    assert seen == [inner]


def test_kernel_registered_before_its_operator():
    early = torch.library.Library("ecosystem_order", "FRAGMENT")
    early.impl("twice", lambda x: x * 2, "CPU")
    late = torch.library.Library("ecosystem_order", "FRAGMENT")
    late.define("twice(Tensor x) -> Tensor")
    assert torch.ops.ecosystem_order.twice(torch.ones(2)).tolist() == [2.0, 2.0]
    gone = torch.library.Library("ecosystem_order", "FRAGMENT")
    gone.impl("thrice", lambda x: x * 3, "CPU")
    gone._destroy()
    del gone
    late.define("thrice(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError):
        torch.ops.ecosystem_order.thrice(torch.ones(2))


def test_index_by_a_tensor_under_vmap():
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    table = torch.arange(10, 14)
    with TransformGetItemToIndex():
        found = torch.vmap(lambda i: table[i])(torch.tensor([2, 0]))
    assert found.tolist() == [12, 10]


def test_single_records_of_a_file(tmp_path):
    weight = torch.arange(6, dtype=torch.float32)
    torch.save({"w": weight}, tmp_path / "file.pt")
    reader = torch.PyTorchFileReader(str(tmp_path / "file.pt"))
    assert reader.has_record("data.pkl")
    assert reader.version() == 3
    (name,) = [n for n in reader.get_all_records() if n.startswith("data/")]
    found = reader.get_storage_from_record(name, 6, torch.float32)
    torch.testing.assert_close(found, weight)
    raw = reader.get_storage_from_record(name, 24, torch.UntypedStorage)
    assert raw.dtype == torch.uint8
    with pytest.raises(RuntimeError):
        reader.get_storage_from_record(name, 7, torch.float32)


def test_hparams_summaries(tmp_path):
    from torch.utils.tensorboard import SummaryWriter, summary

    parts = summary.hparams({"lr": 0.1, "flag": True, "name": "x", "none": None}, {"acc": 1.0})
    assert [b"_hparams_/experiment" in parts[0], b"lr" in parts[1]] == [True, True]
    with pytest.raises(ValueError, match="int, float, str, bool"):
        summary.hparams({"bad": object()}, {})
    with pytest.raises(TypeError, match="same type"):
        summary.hparams({"lr": 1.0}, {}, {"lr": [1.0, "x"]})
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.1}, {"acc": 0.5}, run_name="run")
    assert list((tmp_path / "run").glob("events.*"))


def test_decorating_context_managers():
    from torch.utils._contextlib import _DecoratorContextManager, context_decorator

    depth = []

    class deeper(_DecoratorContextManager):
        def __enter__(self):
            depth.append(1)

        def __exit__(self, *error):
            depth.pop()

    @deeper()
    def count():
        return len(depth)

    assert count() == 1
    assert context_decorator(lambda: deeper(), lambda: len(depth))() == 1
    assert not depth


def test_state_dict_of_one_process():
    from torch.distributed.checkpoint import state_dict as states

    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    weights, moments = states.get_state_dict(model, optimizer)
    assert set(moments["state"]) == {"0.weight", "0.bias", "1.weight", "1.bias"}
    assert moments["param_groups"][0]["params"] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    flat = states.StateDictOptions(flatten_optimizer_state_dict=True)
    for form in (moments, states.get_optimizer_state_dict(model, optimizer, options=flat)):
        fresh = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
        other = torch.optim.Adam(fresh.parameters(), lr=0.7)
        states.set_state_dict(fresh, other, model_state_dict=weights, optim_state_dict=form)
        assert other.param_groups[0]["lr"] == 0.1
        torch.testing.assert_close(fresh[0].weight, model[0].weight)
        assert len(other.state) == 4
    with torch.device("meta"):
        empty = nn.Linear(2, 2)
    full = states.StateDictOptions(full_state_dict=True)
    states.set_model_state_dict(empty, nn.Linear(2, 2).state_dict(), options=full)
    assert empty.weight.device.type == "cpu"
    with pytest.raises(NotImplementedError, match="broadcast_from_rank0"):
        states.get_model_state_dict(
            empty, options=states.StateDictOptions(broadcast_from_rank0=True)
        )


def test_names_that_only_say_no():
    import torch._dynamo.utils
    import torch.distributed.rpc
    from torch._subclasses.fake_tensor import is_fake
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    assert not is_fake(torch.ones(1))
    assert get_proxy_mode() is None
    assert not torch.distributed.rpc.is_available()
    assert not torch._dynamo.utils.is_compile_supported("cpu")
    assert not isinstance(torch.ones(1), torch._C.Graph)
    assert not hasattr(torch._C, "_no_such_name")


def test_dense_tensors_flattened():
    from torch._utils import _flatten_dense_tensors, _take_tensors, _unflatten_dense_tensors

    tensors = [torch.ones(3), torch.zeros(2, 2)]
    parts = _unflatten_dense_tensors(_flatten_dense_tensors(tensors), tensors)
    assert [part.shape for part in parts] == [(3,), (2, 2)]
    groups = list(_take_tensors([torch.ones(3), torch.ones(3).int(), torch.ones(9)], 16))
    assert [[t.numel() for t in group] for group in groups] == [[3], [9], [3]]


def test_alias_question():
    x = torch.ones(4)
    assert torch._C._is_alias_of(x, x[2:])
    assert not torch._C._is_alias_of(x, x.clone())


def test_reparametrize_module_is_undone():
    from torch.nn.utils.stateless import _reparametrize_module

    layer = nn.Linear(2, 2)
    before = layer.weight
    with _reparametrize_module(layer, {"weight": torch.zeros(2, 2)}):
        assert (F.relu(layer(torch.ones(1, 2))) == F.relu(layer.bias)).all()
    assert layer.weight is before


def test_death_of_a_worker_that_is_not_ours():
    import os

    from torch.utils.data._utils import signal_handling

    pid = os.fork()
    if pid == 0:
        os._exit(3)
    try:
        signal_handling._set_worker_pids("test", (pid,))
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(RuntimeError, match=f"pid {pid}.* exit code 3"):
            signal_handling._error_if_any_worker_fails()
        signal_handling._error_if_any_worker_fails()
    finally:
        signal_handling._remove_worker_pids("test")
        os.waitpid(pid, 0)


def test_iterator_of_another_package():
    from torch.utils.data.dataloader import DataLoader, _BaseDataLoaderIter, _DatasetKind

    class Own(_BaseDataLoaderIter):
        def __init__(self, loader):
            super().__init__(loader)
            assert self._timeout == 0
            self.fetcher = _DatasetKind.create_fetcher(
                self._dataset_kind,
                self._dataset,
                self._auto_collation,
                self._collate_fn,
                self._drop_last,
            )

        def _next_data(self):
            return self.fetcher.fetch(self._next_index())

    class Loader(DataLoader):
        def __iter__(self):
            return Own(self)

    loader = Loader(list(range(5)), batch_size=2)
    found = iter(loader)
    assert [batch.tolist() for batch in found] == [[0, 1], [2, 3], [4]]
    found._reset(loader)
    assert next(found).tolist() == [0, 1]


def test_new_of_a_mixin_after_module():
    class Mixin:
        def __new__(cls, *args, **kwargs):
            made = super().__new__(cls)
            made.given = args
            return made

    class Made(nn.Module, Mixin):
        def __new__(cls, *args, **kwargs):
            return super().__new__(cls, *args, **kwargs)

        def __init__(self, width):
            super().__init__()
            self.layer = nn.Linear(width, width)

    assert Made(3).given == (3,)
    assert Made(2).layer.in_features == 2
    with pytest.raises(TypeError):
        nn.Module(1)
