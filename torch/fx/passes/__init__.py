"""Passes: programs that read or change graphs. Submodules are imported when they are asked for."""

_SUBMODULES = frozenset(
    "annotate_getitem_nodes backends dialect fake_tensor_prop graph_drawer graph_manipulation "
    "graph_transform_observer infra net_min_base operator_support param_fetch pass_manager "
    "reinplace runtime_assert shape_prop split_module split_utils splitter_base tools_common "
    "utils".split()
)


def __getattr__(name: str) -> object:
    if name in _SUBMODULES:
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'torch.fx.passes' has no attribute '{name}'")
