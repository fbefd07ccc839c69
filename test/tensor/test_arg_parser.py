"""Calling operators: which arguments are accepted, and what the messages say when they are not."""

import warnings

import pytest

import torch


def message_of(error_type, function, *args, **kwargs):
    with pytest.raises(error_type) as caught:
        function(*args, **kwargs)
    return str(caught.value)


@pytest.fixture
def t():
    return torch.ones(2, 3)


# ---- one signature -------------------------------------------------------------------------------


def test_wrong_type_names_argument_and_position(t):
    assert (
        message_of(TypeError, torch.exp, "a")
        == "exp(): argument 'input' (position 1) must be Tensor, not str"
    )
    assert message_of(TypeError, torch.transpose, t, 0, 1.0).startswith(
        "transpose(): argument 'dim1' (position 3) must be int, not float"
    )


def test_wrong_type_by_keyword_names_argument_only(t):
    assert (
        message_of(TypeError, torch.add, t, t, alpha="a")
        == "add(): argument 'alpha' must be Number, not str"
    )


def test_unexpected_keyword_is_named(t):
    assert (
        message_of(TypeError, torch.exp, t, foo=1)
        == "exp() got an unexpected keyword argument 'foo'"
    )


def test_missing_argument_is_named(t):
    assert (
        message_of(TypeError, torch.exp) == 'exp() missing 1 required positional arguments: "input"'
    )


def test_too_many_arguments_are_counted(t):
    assert (
        message_of(TypeError, torch.exp, t, t)
        == "exp() takes 1 positional argument but 2 were given"
    )


def test_argument_given_twice_is_refused(t):
    assert (
        message_of(TypeError, torch.exp, t, input=t)
        == "exp() got multiple values for argument 'input'"
    )


def test_method_positions_do_not_count_self(t):
    assert (
        message_of(TypeError, t.add, "a")
        == "add(): argument 'other' (position 1) must be Tensor, not str"
    )


# ---- several signatures --------------------------------------------------------------------------


def test_no_signature_matches_lists_all_with_reasons(t):
    text = message_of(TypeError, t.view, 2.0)
    assert text.startswith(
        "view() received an invalid combination of arguments - got (float), but expected one of:\n"
    )
    assert " * (torch.dtype dtype)\n" in text
    assert " * (tuple of ints size)\n" in text
    assert (
        text.count("didn't match because some of the arguments have invalid types: (!float!)") == 2
    )


def test_overload_on_tensor_and_number(t):
    assert torch.equal(torch.add(t, t), torch.add(t, 1))
    assert torch.add(t, 1, alpha=2).tolist() == [[3.0] * 3] * 2


# ---- numbers -------------------------------------------------------------------------------------


def test_number_in_place_of_the_first_tensor(t):
    assert torch.add(2, t).tolist() == [[3.0] * 3] * 2
    assert torch.mul(2, t).tolist() == [[2.0] * 3] * 2
    with pytest.raises(TypeError):
        torch.exp(2)


def test_integers_come_from_index_but_not_from_float_or_bool(t):
    class Index:
        def __index__(self):
            return 1

    assert torch.transpose(t, 0, Index()).shape == (3, 2)
    assert torch.transpose(t, 0, torch.tensor(1)).shape == (3, 2)
    for bad in (1.0, True, torch.tensor(1.0), torch.tensor([1]), None, "1"):
        with pytest.raises(TypeError):
            torch.transpose(t, 0, bad)


def test_integer_overflow_raises(t):
    with pytest.raises((ValueError, OverflowError)):
        torch.transpose(t, 0, 10**30)
    assert "Overflow when unpacking long long" in message_of(TypeError, torch.zeros, 10**30)
    with pytest.raises(OverflowError, match="int too big to convert"):
        torch.add(t, 10**30)


def test_unsigned_64_bit_numbers_are_numbers(t):
    assert torch.add(t, 2**63).tolist()[0][0] == float(2**63)


def test_zero_dim_tensor_is_a_number(t):
    assert torch.add(t, t, alpha=torch.tensor(2)).tolist()[0][0] == 3.0
    with pytest.raises(TypeError, match="must be Number, not Tensor"):
        torch.add(t, t, alpha=torch.tensor([2]))


# ---- lists ---------------------------------------------------------------------------------------


def test_sizes_spread_out_or_in_a_sequence():
    for shape in (
        torch.zeros(2, 3),
        torch.zeros((2, 3)),
        torch.zeros([2, 3]),
        torch.zeros(torch.Size([2, 3])),
    ):
        assert shape.shape == (2, 3)
    assert torch.zeros(torch.tensor(2), 3).shape == (2, 3)
    assert torch.zeros(size=(2,)).shape == (2,)
    assert torch.zeros(()).shape == ()


def test_bad_item_of_a_list_is_named():
    assert message_of(TypeError, torch.zeros, 2, 3, "a") == (
        "zeros(): argument 'size' failed to unpack the object at pos 3 with error "
        '"type must be tuple of ints,but got str"'
    )


def test_single_int_for_a_sized_list(t):
    assert torch.roll(t, 1, 0).shape == (2, 3)
    with pytest.raises(TypeError, match="must be tuple of ints, not int"):
        torch.flip(t, 0)


def test_list_of_tensors_names_the_element(t):
    assert (
        message_of(TypeError, torch.cat, [t, 1])
        == "expected Tensor as element 1 in argument 0, but got int"
    )
    assert message_of(TypeError, torch.cat, t).startswith(
        "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"
    )


# ---- options -------------------------------------------------------------------------------------


def test_dtype_may_be_a_python_type():
    assert torch.zeros(2, dtype=float).dtype is torch.float64
    assert torch.zeros(2, dtype=int).dtype is torch.int64
    assert torch.zeros(2, dtype=bool).dtype is torch.bool
    assert "must be torch.dtype, not str" in message_of(TypeError, torch.zeros, 2, dtype="a")


def test_device_from_string_and_object():
    assert torch.zeros(2, device="cpu").device == torch.zeros(2, device=torch.device("cpu")).device
    with pytest.raises(RuntimeError, match="device type at start of device string: foo"):
        torch.zeros(2, device="foo")
    assert "must be torch.device, not float" in message_of(TypeError, torch.zeros, 2, device=3.0)


def test_numpy_names_of_arguments(t):
    assert torch.add(x=t, other=t).tolist()[0][0] == 2.0
    assert torch.add(x1=t, x2=t).tolist()[0][0] == 2.0


def test_out_none_means_no_out(t):
    assert torch.exp(t, out=None).shape == (2, 3)
    out = torch.empty(2, 3)
    assert torch.exp(t, out=out) is out


# ---- errors of the operator ----------------------------------------------------------------------


def test_operator_error_names_the_call(t):
    text = message_of(RuntimeError, torch.add, t, torch.ones(4))
    assert "in torch.add(input: float32[2, 3] cpu, other: float32[4] cpu)" in text


def test_lone_surrogates_and_odd_objects_do_not_crash(t):
    with pytest.raises((TypeError, UnicodeEncodeError, RuntimeError)):
        torch.zeros(2, device="\ud800")
    with pytest.raises((TypeError, UnicodeEncodeError)):
        torch.add(t, t, **{"\ud800": 1})
    with pytest.raises(TypeError):
        torch.add(object(), t)


def test_number_of_old_may_stand_between_tensors():
    a, b = torch.full((2, 2), 2.0), torch.full((2, 2), 3.0)
    calls = [
        (lambda: torch.addcmul(a, 10, b, b), 92.0),
        (lambda: a.clone().addcmul_(10, b, b), 92.0),
        (lambda: torch.addcdiv(a, 10, b, b), 12.0),
        (lambda: torch.add(a, 10, b), 32.0),
        (lambda: a.sub(10, b), -28.0),
        (lambda: torch.addmm(10, a, 5, b, b), 110.0),
        (lambda: torch.addmm(10, a, b, b), 38.0),
        (lambda: a.addmm(10, 5, b, b), 110.0),
        (lambda: a.clone().addmm_(10, b, b), 38.0),
        (lambda: torch.addmm(10, a, 5, b, b, out=torch.empty(2, 2)), 110.0),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call, expected in calls:
            assert (call() == expected).all()


def test_number_of_old_is_said_to_be_deprecated():
    a = torch.ones(2)
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match=r"This overload of addcmul is deprecated:\n\taddcmul"):
            torch.addcmul(a, 2, a, a)
    finally:
        torch.set_warn_always(False)


def test_number_in_a_place_of_no_form_is_refused():
    a = torch.ones(2)
    with pytest.raises(TypeError, match=r"addcmul\(\) takes 3 positional arguments but 4 were"):
        torch.addcmul(2, a, a, a)
