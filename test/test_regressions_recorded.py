"""Values and files where a wide comparison with PyTorch's recorded answers found ours different:
indexing with masks, random streams of unusual layouts, and whole objects in checkpoints."""

import io
import pickle
import pickletools
import zipfile

import pytest

import torch
import torch.nn.functional as F
from torch import nn

t = torch.tensor


class TestMasks:
    mask = t([[True, False, True], [False, True, True]])

    def test_a_mask_of_two_dimensions_before_a_number(self):
        x = torch.arange(24).view(2, 3, 4)
        assert x[self.mask, 1].tolist() == [1, 9, 17, 21]
        assert x[self.mask, ::2].tolist() == [[0, 2], [8, 10], [16, 18], [20, 22]]
        assert x[self.mask, None].shape == (4, 1, 4)

    def test_a_mask_of_two_dimensions_between_others(self):
        y = torch.arange(120).view(2, 3, 4, 5)
        expected = torch.stack([y[i, j, :, -1] for i, j in self.mask.nonzero().tolist()])
        assert torch.equal(y[self.mask, :, -1], expected)
        z = y.permute(2, 0, 1, 3)
        expected = torch.stack([z[:, i, j, 2] for i, j in self.mask.nonzero().tolist()], 1)
        assert torch.equal(z[:, self.mask, 2], expected)

    def test_assigning_behind_such_a_mask(self):
        x = torch.zeros(2, 3, 4)
        x[self.mask, 1] = 5
        assert x.sum() == 20
        assert x[..., 1].bool().equal(self.mask)

    @pytest.mark.parametrize("value", [t(3.5), t([3.5]), t([[3.5]]), t(3.5, requires_grad=True)])
    def test_one_value_takes_the_dtype_of_what_is_masked(self, value):
        for key in (t([True, False]), (slice(None), t([True, False, True])), [True, False]):
            x = torch.arange(6).view(2, 3)
            reference = x.clone()
            x[key] = value
            reference[key] = 3
            assert torch.equal(x, reference)
        whole = torch.zeros(2, 3)
        whole[whole < 1] = t(2.5, dtype=torch.float64)
        assert torch.equal(whole, torch.full((2, 3), 2.5))

    def test_what_the_dtype_does_not_hold(self):
        with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t"):
            torch.arange(3)[t([True, False, True])] = t(1j)
        with pytest.raises(RuntimeError, match="Index put requires the source and destination"):
            torch.arange(3)[t([0])] = t(1.5)

    def test_indices_are_checked_before_dtypes(self):
        x = torch.arange(6).view(2, 3)
        with pytest.raises(IndexError, match="The shape of the mask"):
            x[t([True, False, True])] = t([1.5])
        with pytest.raises(IndexError, match="must be long, int, byte or bool"):
            x[t([0.5])] = t([1.5, 2.5])
        with pytest.raises(RuntimeError, match="shape mismatch"):
            x[x > 2] = t([1.5, 2.5])


class TestStreams:
    """The numbers are those of PyTorch's CPU generator."""

    def test_bernoulli_of_probabilities_draws_in_memory_order(self):
        torch.manual_seed(3)
        p = torch.rand(2, 3)
        torch.manual_seed(5)
        plain = torch.zeros(3, 2).bernoulli_(p.t())
        torch.manual_seed(5)
        turned = torch.zeros(2, 3).t().bernoulli_(p.t())
        torch.manual_seed(5)
        assert torch.equal(turned.t(), torch.zeros(2, 3).bernoulli_(p))
        assert plain.shape == turned.shape

    def test_multinomial_of_turned_weights_draws_in_memory_order(self):
        weights = torch.rand(50, 4).t()
        torch.manual_seed(2)
        clocks = torch.empty_like(weights).exponential_()
        torch.manual_seed(2)
        drawn = torch.multinomial(weights, 5)
        assert clocks.stride() == (1, 4)
        assert torch.equal(drawn, (weights / clocks).topk(5).indices)

    def test_rrelu_bounds_are_not_rounded_to_bfloat16(self):
        torch.manual_seed(1)
        slopes = -F.rrelu(torch.full((4,), -1.0, dtype=torch.bfloat16), 0.1, 0.4, training=True)
        torch.manual_seed(1)
        wide = -F.rrelu(torch.full((4,), -1.0), 0.1, 0.4, training=True)
        assert torch.equal(slopes, wide.to(torch.bfloat16))
        torch.manual_seed(1)
        steep = F.rrelu(torch.full((4,), -1.828125, dtype=torch.bfloat16), 0.1, 0.4, training=True)
        assert torch.equal(steep, (wide * -1.828125).to(torch.bfloat16))

    def test_normal_takes_the_dtype_of_the_means(self):
        mean, std = torch.zeros(3, dtype=torch.float16), torch.ones(3, dtype=torch.float64)
        assert torch.normal(mean, std).dtype == torch.float16
        assert torch.normal(mean.double(), std.float()).dtype == torch.float64

    def test_sizes_of_permutations(self):
        assert torch.randperm(300, dtype=torch.bfloat16).shape == (300,)
        with pytest.raises(RuntimeError, match="n cannot be greater than 2049 for Half type"):
            torch.randperm(2050, dtype=torch.float16)
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t"):
            torch.randperm(300, dtype=torch.uint8)
        with pytest.raises(RuntimeError, match="negative dimension -1"):
            torch.randperm(-1)

    def test_dropout3d_of_other_shapes_is_one_sample(self):
        x = torch.ones(4, 6)
        with pytest.warns(UserWarning, match="dropout3d: Received a 2-D input"):
            out = F.dropout3d(x, 0.5)
        assert all(row.unique().numel() == 1 for row in out)

    def test_one_ratio_for_three_dimensions(self):
        x = torch.randn(1, 1, 6, 8, 10)
        assert F.fractional_max_pool3d(x, 2, output_ratio=0.5).shape == (1, 1, 3, 4, 5)

    def test_ctc_gradient_of_an_impossible_target(self):
        x = torch.randn(4, 1, 3).log_softmax(2).requires_grad_()
        lengths = t([2]), t([3])
        F.ctc_loss(x, t([[1, 1, 1]]), *lengths, reduction="sum").backward()
        assert x.grad[:2].isnan().all()
        assert not x.grad[2:].any()
        x.grad = None
        F.ctc_loss(x, t([[1, 1, 1]]), *lengths, zero_infinity=True).backward()
        assert not x.grad.any()


def globals_of(obj):
    """The names that the pickle of a saved object calls for."""
    file = io.BytesIO()
    torch.save(obj, file)
    with zipfile.ZipFile(file) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("data.pkl"))
        operations = pickletools.genops(archive.read(name))
        return {arg for op, arg, _ in operations if op.name == "GLOBAL"}


class TestWholeObjects:
    def test_classes_are_where_pytorch_looks_for_them(self):
        weight = torch.ones(2, 2, requires_grad=True)
        for obj, name in (
            (torch.optim.AdamW([weight]), "torch.optim.adamw AdamW"),
            (torch.optim.Adafactor([weight]), "torch.optim Adafactor"),
            (torch.optim.Muon([weight]), "torch.optim Muon"),
            (nn.Fold(4, 2), "torch.nn.modules.fold Fold"),
            (nn.Unfold(2), "torch.nn.modules.fold Unfold"),
            (nn.LazyConv2d(2, 3), "torch.nn.modules.conv LazyConv2d"),
            (nn.LazyLinear(2), "torch.nn.modules.module _WrappedHook"),
        ):
            assert name in globals_of(obj)

    def test_lists_of_weights_are_in_pickles_only(self):
        net = nn.LSTM(2, 3, bidirectional=True)
        state = net.__getstate__()
        assert state["_flat_weights_names"][:2] == ["weight_ih_l0", "weight_hh_l0"]
        assert all(w is getattr(net, n) for n, w in zip(
            state["_flat_weights_names"], state["_flat_weights"], strict=True))  # fmt: skip
        again = pickle.loads(pickle.dumps(net))
        assert "_flat_weights" not in vars(again)
        assert torch.equal(again._flat_weights[0], net.weight_ih_l0)

    def test_a_legacy_file_with_the_source_of_a_class(self):
        """PyTorch wrote ("module", class, path, source) for the class of each module."""
        net = nn.Linear(2, 3)

        class Pickler(pickle.Pickler):
            def persistent_id(self, obj):
                if obj is nn.Linear and obj not in described:
                    described.append(obj)
                    return "module", obj, "linear.py", "class Linear: ..."
                if isinstance(obj, torch.storage.TypedStorage):
                    key = str(obj._cdata)
                    kept[key] = obj
                    return "storage", torch.FloatStorage, key, "cpu", obj._size(), None
                return None

        kept, described = {}, []
        file = io.BytesIO()
        system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
        for head in (0x1950A86A20F9469CFC6C, 1001, system):
            pickle.dump(head, file, protocol=2)
        Pickler(file, protocol=2).dump(net)
        pickle.dump(sorted(kept), file, protocol=2)
        for key in sorted(kept):
            file.write(kept[key]._size().to_bytes(8, "little"))
            file.write(bytes(kept[key].untyped().tolist()))
        file.seek(0)
        loaded = torch.load(file, weights_only=False)
        assert torch.equal(loaded.weight, net.weight)
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError):
            torch.load(file)

    def test_strided_nested_tensors_in_the_form_pytorch_reads(self):
        nested = torch.nested.nested_tensor([torch.ones(2, 2), torch.arange(3.0).view(3, 1)])
        assert "torch._utils _rebuild_nested_tensor" in globals_of(nested)
        file = io.BytesIO()
        torch.save(nested, file)
        file.seek(0)
        for part, own in zip(torch.load(file).unbind(), nested.unbind(), strict=True):
            assert torch.equal(part, own)

    def test_a_hook_before_loading_survives(self):
        net = nn.utils.spectral_norm(nn.Linear(2, 2))
        again = pickle.loads(pickle.dumps(net))
        assert torch.equal(again.weight_orig, net.weight_orig)
        seen = []
        holder = nn.Module()
        holder.register_load_state_dict_pre_hook(lambda module, *rest: seen.append(module))
        (hook,) = holder._load_state_dict_pre_hooks.values()
        state = hook.__getstate__()
        assert state["with_module"] is True and state["module"] is holder
        other = object.__new__(type(hook))
        other.__setstate__({"hook": seen.append, "with_module": False})
        other("loaded")
        assert seen == ["loaded"]

    def test_refusals_have_pytorchs_names(self):
        file = io.BytesIO()
        torch.save(range(3), file)
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError) as caught:
            torch.load(file)
        assert type(caught.value).__name__ == "UnpicklingError"
        assert isinstance(caught.value, torch.serialization.CheckpointError)
        with pytest.raises(RuntimeError) as caught:
            torch.load(io.BytesIO(b"PK\x03\x04"))
        assert type(caught.value).__name__ == "RuntimeError"
