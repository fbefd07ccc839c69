"""__torch_function__, modes, the default device and __torch_dispatch__ as Python code sees them."""

import inspect
import math
import pickle
import types

import pytest
from tensor_support import OperatorLog

import torch
from torch.overrides import (
    TorchFunctionMode,
    get_ignored_functions,
    get_overridable_functions,
    get_testing_overrides,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    redispatch_function,
    resolve_name,
)


class Log(TorchFunctionMode):
    def __init__(self):
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


def test_subclass_survives_operators_and_python_functions():
    class Mine(torch.Tensor):
        pass

    x = torch.arange(4.0).as_subclass(Mine)
    assert type(x + 1) is Mine and type(torch.split(x, 2)[0]) is Mine
    assert type(x.max(dim=0)[0]) is Mine
    assert type(x.as_subclass(torch.Tensor)) is torch.Tensor


def test_objects_that_override_get_the_call():
    class Stand:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, args

    s = Stand()
    assert torch.add(s, 1) == (torch.add, (s, 1))
    assert torch.split(s, 2)[0] is torch.split
    assert is_tensor_like(s) and not is_tensor_like(1)
    assert has_torch_function((s,)) and not has_torch_function((torch.ones(1),))


def test_override_that_declines_everything_raises():
    class Never:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="returned NotImplemented"):
        torch.add(Never(), 1)
    with pytest.raises(TypeError, match="no implementation found"):
        handle_torch_function(torch.split, (Never(),), Never(), 1)


def test_mode_sees_functions_methods_and_indexing():
    with Log() as log:
        x = torch.ones(4)
        x.add(1)
        x[0]
        torch.split(x, 2)
        torch.tensor(1)
    assert log.names == ["ones", "add", "__getitem__", "split", "tensor"]


def test_modes_nest_and_leave():
    outer, inner = Log(), Log()
    with outer:
        with inner:
            torch.ones(1)
        torch.zeros(1)
    torch.ones(1)
    assert inner.names == ["ones"] and outer.names == ["ones", "zeros"]


def test_device_as_context_is_the_default_device():
    with torch.device("meta"):
        assert torch.ones(2).is_meta and torch.tensor([1]).is_meta
        assert torch.ones(2, device="cpu").device.type == "cpu"
        assert torch.get_default_device() == torch.device("meta")
    assert torch.ones(2).device.type == "cpu"


def test_default_device_can_be_set_and_reset():
    torch.set_default_device("meta")
    try:
        assert torch.zeros(2).is_meta
    finally:
        torch.set_default_device(None)
    assert torch.zeros(2).device.type == "cpu"


def test_dispatch_mode_sees_operators():
    with OperatorLog() as mode:
        torch.ones(2)[0]
    assert mode.names[-1] == "aten.select.int"


def test_overridable_functions_have_names():
    functions = get_overridable_functions()
    assert torch.add in functions[torch]
    assert resolve_name(torch.add) == "torch.add"
    assert resolve_name(torch.Tensor.add) == "torch.Tensor.add"
    assert resolve_name(print) is None


def test_missing_names_are_said_to_be_missing():
    assert not hasattr(torch, "no_such_name")
    with pytest.raises(AttributeError, match="module 'torch' has no attribute 'no_such_name'"):
        _ = torch.no_such_name


# ---- which functions can be overridden ----------------------------------------------------------


class Stand:
    """Not a tensor; notes the function that is called with it."""

    called = None

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.called = func
        return -1


def _required(function):
    """A Stand for each argument that must be given; None for functions of operators' tables."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    args = [Stand() for p in parameters if p.kind <= 1 and p.default is p.empty]
    return args + [Stand()] * any(p.kind is p.VAR_POSITIONAL for p in parameters)


def test_every_python_function_asks_its_arguments():
    silent = []
    for namespace, functions in get_overridable_functions().items():
        for function in functions:
            if namespace is torch.Tensor or not isinstance(function, types.FunctionType):
                continue
            args = _required(function)
            if function is torch.sym_sum:
                args = [[Stand()]]
            elif function is torch.einsum:
                args = ["i", Stand()]
            Stand.called = None
            try:
                function(*args)
            except Exception as error:
                silent.append((resolve_name(function), repr(error)))
                continue
            if Stand.called is None:
                silent.append((resolve_name(function), "did not ask"))
    assert silent == []


@pytest.mark.parametrize(
    "name", ["add", "is_complex", "is_floating_point", "numel", "get_device", "is_nonzero", "mm"]
)
def test_functions_of_tensors_are_overridable_and_members_of_torch(name):
    function = getattr(torch, name)
    args = [Stand()] * (2 if name in ("add", "mm") else 1)
    assert function(*args) == -1 and Stand.called is function
    assert function.__module__ == "torch"
    assert function in get_testing_overrides() and function not in get_ignored_functions()


def test_testing_overrides_have_the_parameters_of_their_functions():
    overrides = get_testing_overrides()
    functional = torch.nn.functional
    names = inspect.getfullargspec(overrides[functional.layer_norm]).args
    assert names == ["input", "normalized_shape", "weight", "bias", "eps"]
    assert overrides[functional.layer_norm](Stand(), (1,)) == -1
    with pytest.raises(TypeError, match="missing a required argument"):
        overrides[functional.layer_norm]()


class Asked(torch.Tensor):
    """A tensor that notes the first function that is called with it."""

    first = None

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.first = cls.first or func
        return -1


def test_every_python_method_of_tensors_asks_first():
    x, silent = torch.ones(1).as_subclass(Asked), []
    for method in get_overridable_functions()[torch.Tensor]:
        if not isinstance(method, types.FunctionType):
            continue
        Asked.first = None
        result = method(*[x] * len(_required(method)))
        if Asked.first is not method or result != -1:
            silent.append(resolve_name(method))
    assert silent == []


@pytest.mark.parametrize("name", ["numpy", "item", "data_ptr", "__invert__", "__getitem__"])
def test_methods_in_c_ask_first(name):
    x = torch.ones(1).as_subclass(Asked)
    Asked.first = None
    args = (0,) if name == "__getitem__" else ()
    assert getattr(x, name)(*args) == -1 and Asked.first is not None


def test_properties_ask_and_indices_too():
    x = torch.ones(1).as_subclass(Asked)
    assert x.__cuda_array_interface__ == -1 and x.shape == -1
    assert torch.tensor([5])[Stand()] == -1 and torch.tensor([5])[0, Stand()] == -1


def test_initializers_ask_their_tensor():
    init = torch.nn.init
    for function, args in ((init.uniform_, ()), (init.normal_, ()), (init.constant_, (1,))):
        assert function(Stand(), *args) == -1 and Stand.called is function


def test_factories_and_settings_are_not_overridable():
    ignored = get_ignored_functions()
    assert {torch.ones, torch.manual_seed, torch.set_num_threads, torch.load} <= ignored
    assert not ignored & set(get_testing_overrides())


def test_functions_in_modules_of_operators_can_be_pickled():
    for function in (
        torch.linalg.inv,
        torch.fft.fft,
        torch.special.erf,
        torch.nn.functional.linear,
    ):
        assert pickle.loads(pickle.dumps(function)) is function
    assert torch.linalg.inv.__module__ == "torch._C._linalg"
    assert torch.nn.functional.mse_loss.__module__ == "torch.nn.functional"


def test_symbolic_functions_ask_their_arguments_and_compute_on_numbers():
    assert torch.sym_max(Stand(), 1) == -1 and torch.sym_sum([1, Stand()]) == -1
    assert torch.sym_max(2, 3) == 3 and torch.sym_sum([1, 2]) == 3
    assert torch._sym_cos(0.5) == math.cos(0.5) and torch._sym_sqrt is torch.sym_sqrt


# ---- one level less ------------------------------------------------------------------------------


def test_redispatch_skips_one_level_and_lets_operators_inside_ask():
    seen = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return redispatch_function(func, types, args, kwargs)

    def scaled(a, b):
        if has_torch_function((a, b)):
            return handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    x = torch.tensor([3.0]).as_subclass(Logged)
    result = scaled(x, x)
    assert seen == ["scaled", "mul"]
    assert type(result) is torch.Tensor and float(result) == 10.0


def test_overrides_switched_off_can_be_switched_on_again_inside():
    with torch._C.DisableTorchFunctionSubclass():
        assert torch.overrides.has_torch_function((Stand(),)) is False
        with torch._C._EnableTorchFunction():
            assert torch.overrides.has_torch_function((Stand(),)) is True
        assert torch.overrides.has_torch_function((Stand(),)) is False


def test_super_torch_dispatch_runs_the_operator_on_the_data():
    class Halved(torch.Tensor):
        calls = 0

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.calls += 1
            return super().__torch_dispatch__(func, types, args, kwargs)

    x = torch.ones(2).as_subclass(Halved)
    assert torch.add(x, x).tolist() == [2.0, 2.0] and Halved.calls >= 1


# ---- streams of the CPU --------------------------------------------------------------------------


def test_stream_of_the_cpu_is_always_ready():
    stream = torch.Stream(device="cpu")
    assert stream.device.type == "cpu" and (stream.stream_id, stream.device_index) == (0, -1)
    assert stream.query() is True and stream.synchronize() is None
    assert stream == torch.Stream(device="cpu") and hash(stream) == hash(torch.Stream("cpu"))
    assert repr(stream) == "torch.Stream device_type=cpu, device_index=-1, stream_id=0"
    with stream as entered:
        assert entered is stream
    stream.wait_stream(stream)
