"""The operators on states of generators, under the name that programs know."""

_OPERATORS = ("graphsafe_run_with_rng_state", "run_and_save_rng_state", "run_with_rng_state")


def __getattr__(name: str) -> object:
    if name in _OPERATORS:
        from torch._higher_order_ops import rng

        return getattr(rng, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
