"""The order of products in torch.einsum: its own greedy search; opt_einsum is not used."""

__all__ = ["get_opt_einsum", "is_available"]

enabled = False
strategy = None


def is_available():
    """Whether opt_einsum is used."""
    return False


def get_opt_einsum():
    """The opt_einsum package, or None."""
    return None
