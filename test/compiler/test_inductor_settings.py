"""Which settings of the compiler decide something, and what is said of the others."""

from __future__ import annotations

import pathlib
import re
import types

import pytest

import torch
from torch._inductor import config, settings

ROOT = pathlib.Path(torch.__file__).parent


def sources() -> str:
    """The Python code of the compiler, without the file of its settings."""
    folders = ("_inductor", "_dynamo", "_functorch")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return "\n".join(p.read_text() for p in files if p.name not in ("config.py", "settings.py"))


def test_every_setting_is_read_where_it_decides_and_nowhere_else():
    text = sources()
    attributes = set(re.findall(r"\bconfig\.((?:(?:aot_inductor|cpp|trace|triton)\.)?\w+)", text))
    words = set(re.findall(r"\"([\w.]+)\"", text))
    names = set(config.get_config_copy())
    idle = settings.without_effect()
    assert idle < names
    assert names - idle <= attributes | words
    assert not idle & (attributes - {"static_weight_shapes"})  # a setting of functorch


def test_option_that_changes_nothing_is_named_once_in_the_log(monkeypatch):
    said: list[str] = []
    log = types.SimpleNamespace(warning=lambda text, *args: said.append(text % args))
    monkeypatch.setattr(settings, "log", log)
    monkeypatch.setattr(settings, "_told", set())
    options = {"epilogue_fusion": False, "pattern_matcher": True}
    for _ in range(2):
        run = torch.compile(lambda x: x + 1, options=options)
    assert torch.equal(run(torch.ones(2)), torch.full((2,), 2.0))
    assert len(said) == 1
    assert "epilogue_fusion" in said[0] and "pattern_matcher" not in said[0]


def test_option_without_a_name_here_is_refused():
    with pytest.raises(RuntimeError, match="Unexpected optimization option epilog_fusion"):
        torch.compile(lambda x: x, options={"epilog_fusion": True})
