"""The tracker of running modules that calls back around their passes."""

import pytest

import torch
from torch import nn
from torch.distributed._tools.mod_tracker import ModTracker


def test_hooks_come_around_the_passes_of_every_module_with_its_name():
    tracker, seen = ModTracker(), []

    def note(what):
        return lambda module, *rest: seen.append(
            (what, module and tracker.get_known_fqn(module), tracker.is_bw)
        )

    tracker.register_user_hooks(*map(note, ("before", "after", "back", "done")))
    with pytest.raises(AssertionError, match="Only one pre_fw"):
        tracker.register_user_hooks(note("again"))
    model = nn.Sequential(nn.Linear(3, 3))
    with tracker:
        model(torch.ones(2, 3, requires_grad=True)).sum().backward()
    names = ["Sequential", "Sequential.0"]
    assert seen[:4] == [
        ("before", names[0], False), ("before", names[1], False),
        ("after", names[1], False), ("after", names[0], False),
    ]  # fmt: skip
    assert sorted(seen[4:]) == sorted((w, n, True) for w in ("back", "done") for n in names)
    assert tracker.parents == {"Global"}
    tracker.clear_user_hooks()
    with tracker:
        model(torch.ones(2, 3))
    assert len(seen) == 8
