"""Checks of operators that were defined outside of torch; torch.library.opcheck runs them."""


class OpCheckError(Exception):
    """An operator does not do what its schema says."""
