"""Views, indexing and what is refused of nested tensors with the jagged layout."""

import pytest
from nested_support import assert_components, components, jagged

import torch
import torch.nn.functional as F


def test_rearranging():
    parts = components(4, 6)
    nt = jagged(parts)
    cases = [
        (lambda x, s: x.transpose(1 + s, 2 + s), None),
        (lambda x, s: x.transpose(-1, -2), None),
        (lambda x, s: x.transpose(0 + s, 2 + s), None),
        (lambda x, s: x.mT, None),
        (lambda x, s: x.movedim(0 + s, 1 + s), None),
        (lambda x, s: x.unsqueeze(0 + s), None),
        (lambda x, s: x.unsqueeze(-1), None),
        (lambda x, s: x.unsqueeze(2 + s).squeeze(2 + s), None),
        (lambda x, s: x.flatten(1 + s, 2 + s), None),
        (lambda x, s: x.unflatten(-1, (2, 3)), None),
        (lambda x, s: x.select(2 + s, 3), None),
        (lambda x, s: x.narrow(2 + s, 1, 2), None),
        (lambda x, s: x[..., 1:3], None),
        (lambda x, s: x[..., 0], None),
        (lambda x, s: x[..., None], None),
        (lambda x, s: x[..., [2, 0]], None),
        (lambda x, s: x.index_select(1 + s, torch.tensor([3, 1])), None),
        (lambda x, s: x.repeat_interleave(2, dim=1 + s), None),
        (lambda x, s: x.chunk(2, -1)[1], None),
        (lambda x, s: x.split([1, 5], -1)[1], None),
        (lambda x, s: torch.cat([x, x], -1), None),
        (lambda x, s: torch.stack([x, x], -1), None),
        (lambda x, s: torch.stack([x, x], 1 + s), None),
    ]
    for f, _ in cases:
        found = f(nt, 1)
        assert_components(found, [f(p, 0) for p in parts])
        assert found._structure is nt._structure
    assert_components(nt.permute(0, 3, 1, 2), [p.permute(2, 0, 1) for p in parts])
    assert_components(nt.transpose(1, 2).contiguous(), [p.transpose(0, 1) for p in parts])
    assert nt.transpose(1, 2).values().data_ptr() == nt.values().data_ptr()


def test_views_name_the_ragged_dimension():
    parts = components(8)
    nt = jagged(parts)
    heads = [p.view(-1, 2, 4) for p in parts]
    assert_components(nt.view(4, -1, 2, 4), heads)
    assert_components(nt.view(4, nt.size(1), 2, 4), heads)
    assert_components(nt.reshape(-1, nt.size(1), 2, -1), heads)
    assert_components(
        nt.view(4, -1, 2, 4).transpose(1, 2).reshape(4, 2, -1, 4),
        [h.transpose(0, 1) for h in heads],
    )
    assert_components(
        nt.unsqueeze(-1).expand(-1, -1, -1, 3), [p[..., None].expand(-1, -1, 3) for p in parts]
    )
    assert nt.view_as(nt + 1).shape == nt.expand_as(nt).shape == nt.shape
    for wrong in ((4, 5, 8), (-1, 8), (-1,), (3, -1, 8)):
        with pytest.raises(RuntimeError, match="cannot view shape"):
            nt.view(*wrong)


def test_indexing_components():
    parts = components(3)
    nt = jagged(parts)
    torch.testing.assert_close(nt[1], parts[1])
    torch.testing.assert_close(nt[-1, 0], parts[-1][0])
    torch.testing.assert_close(nt[torch.tensor(1)], parts[1])
    assert_components(nt[1:3], parts[1:3])
    assert_components(nt[torch.tensor([3, 0])], [parts[3], parts[0]])
    assert_components(nt[[True, False, True, False]], [parts[0], parts[2]])
    assert_components(nt[:, :, 1], [p[:, 1] for p in parts])
    assert_components(nt.chunk(2)[1], parts[2:])
    assert_components(torch.cat([nt, nt[:1]]), [*parts, parts[0]])
    nt[1] = torch.zeros(5, 3, dtype=torch.float64)
    nt[..., 2] = 9.0
    assert nt[1][:, :2].eq(0).all() and nt.values()[:, 2].eq(9).all()
    with pytest.raises(IndexError, match="out of bounds"):
        nt[4]
    with pytest.raises(IndexError, match="too many indices"):
        nt[0, 0, 0, 0]
    with pytest.raises(RuntimeError, match="ragged dim"):
        nt[:, 0]
    with pytest.raises(NotImplementedError, match="indexing by a nested"):
        nt[nt > 0]


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda x: x.transpose(0, 1), ValueError, "batch dimension"),
        (lambda x: x.permute(1, 0, 2), ValueError, "batch dimension"),
        (lambda x: x.unsqueeze(0), RuntimeError, "dim=0"),
        (lambda x: x.squeeze(1), RuntimeError, "ragged dim"),
        (lambda x: x.select(1, 0), RuntimeError, "ragged dim"),
        (lambda x: x.narrow(1, 0, 1), RuntimeError, "ragged dim"),
        (lambda x: x.chunk(2, 1), RuntimeError, "ragged dim"),
        (lambda x: x.split(2, 1), RuntimeError, "ragged dim"),
        (lambda x: x.split(1, 0), RuntimeError, "dim=0"),
        (lambda x: x.unbind(1), RuntimeError, "only supported for NestedTensor on dim=0"),
        (lambda x: x.flatten(), RuntimeError, "dim=0"),
        (lambda x: x.flatten(1), RuntimeError, "ragged dim"),
        (lambda x: torch.cat([x, x], 1), RuntimeError, "ragged dim"),
        (lambda x: torch.cat([x, torch.ones(4, 1, 3)], -1), RuntimeError, "same structure"),
        (lambda x: torch.stack([x, x]), RuntimeError, "dim=0"),
        (lambda x: torch.stack([x, x], 1), RuntimeError, "ragged dim"),
        (lambda x: x.expand(4, 5, 3), RuntimeError, "cannot expand"),
        (lambda x: x.size(3), IndexError, "Dimension out of range"),
        (lambda x: x.tolist(), RuntimeError, "not supported for tensor subclasses"),
        (lambda x: x.numpy(), RuntimeError, "not supported for tensor subclasses"),
        (lambda x: x.item(), RuntimeError, "cannot be converted to Scalar"),
        (lambda x: bool(x), RuntimeError, "ambiguous"),
    ],
)
def test_refused_calls(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call(jagged(components(3)))


@pytest.mark.parametrize(
    "call",
    [
        torch.unique,
        torch.nonzero,
        torch.tril,
        torch.linalg.svd,
        lambda x: torch.mm(x, x),
        lambda x: F.pad(x, (1, 1)),
        lambda x: F.conv1d(x, torch.ones(3, 3, 1)),
        lambda x: F.cross_entropy(x, x),
        lambda x: torch._foreach_add([x], 1),
        lambda x: x.T.real,
    ],
)
def test_missing_calls_say_what_is_missing(call):
    with pytest.raises((NotImplementedError, ValueError), match=r"nested|batch dimension"):
        call(jagged(components(3)))
    try:
        torch.unique(jagged(components(3)))
    except NotImplementedError as error:
        text = str(error)
    assert "unique" in text and "torch.jagged" in text and "float64" in text and "cpu" in text
