"""Why some operators are slower than the peer by more than records.py allows: the cause, as seen in
the code and its profile. Names are those of the op records."""

from __future__ import annotations

_CAUSES = {
    "series, continued fractions or Taylor steps in double precision, element by element": """
        special.airy_ai igamma igammac special.gammainc special.gammaincc
    """,
    "computed in double precision, so that a float's tail keeps its digits": "special.ndtr",
    "complex numbers are taken apart, over a dimension that is not the last one by one": """
        sum mean prod sum_to_size
    """,
    "LAPACK of OpenBLAS on small or complex matrices": """
        linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh geqrf linalg.householder_product
        cholesky_inverse linalg.ldl_factor
    """,
    "products of complex matrices run at 0.7 to 0.8 of the rate of the peer's library": """
        baddbmm conv_tbc corrcoef cov
    """,
    "each row of some hundreds of elements pays about 20 ns for the walk of the iterator": """
        add.alpha einsum.i,j->ij outer
    """,
    "rows of some tens of elements pay for a call each": "flip nn.functional.pad",
    "short rows: each pays for joining the lanes of its sum": "nn.functional.rms_norm",
    "along the last dimension each element goes to a place of its own, one by one": "index_add",
    "every divisor is compared with zero in a scalar loop": "floor_divide",
    "indices are copied and checked before use, because another thread may change them": "bincount",
    "indices are checked, compared with the padding index and used: three passes over short bags":
        "nn.functional.embedding_bag",
    "each row of some hundred outputs pays for its preparation": "nn.functional.max_pool1d",
    "three dimensions go through columns, which for few channels cost more than the product": """
        nn.functional.conv3d
    """,
    "the exponential and logarithm of the C library in double precision, for every state": """
        nn.functional.ctc_loss
    """,
    "one random double for each negative element, behind a branch on the data": """
        nn.functional.rrelu
    """,
    "running products, a copy beside a column of ones, and a copy in reverse": "vander",
    "each sum waits for the one before, in a scalar loop": "cumsum",
    "the sum is a pass of its own after that of the power": "_foreach_powsum",
    "a register of 16 floats makes a store of 16 bytes": "char",
    "both triangles are read from columns, element by element": "lu_unpack",
    "the class of each pixel is read from a plane of its own, one by one": "nn.functional.nll_loss",
}  # fmt: skip

CAUSES = {name: cause for cause, names in _CAUSES.items() for name in names.split()}
