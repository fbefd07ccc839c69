"""Names of linear algebra that PyTorch took out after version 1.9: calling one says what to call
instead."""

_INSTEAD = {
    "eig": "torch.linalg.eig or torch.linalg.eigvals, whose results are complex",
    "lstsq": "torch.linalg.lstsq, which takes its arguments the other way round",
    "matrix_rank": "torch.linalg.matrix_rank, whose argument 'symmetric' is called 'hermitian'",
    "solve": "torch.linalg.solve, which takes its arguments the other way round",
    "symeig": "torch.linalg.eigh or torch.linalg.eigvalsh, which read the lower triangle",
}


def _removed(name):
    def call(*args, **kwargs):
        raise RuntimeError(
            "This function was deprecated since version 1.9 and is now removed. "
            f"Instead of torch.{name} use {_INSTEAD[name]}."
        )

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Removed: use {_INSTEAD[name]}."
    return call


eig = _removed("eig")
lstsq = _removed("lstsq")
matrix_rank = _removed("matrix_rank")
solve = _removed("solve")
symeig = _removed("symeig")
