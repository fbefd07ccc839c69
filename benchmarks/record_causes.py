"""Why some operators are slower than the peer by more than records.py allows: the cause where it is
known from the code, else that nobody has looked. Names are those of the op records."""

from __future__ import annotations

_CAUSES = {
    "the peer returns a real argument itself; here the result is a new tensor": "conj_physical",
    "double precision through the C library, element by element": """
        special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1 float_power
    """,
    "series, continued fractions or Taylor steps in double precision, element by element": """
        special.airy_ai igamma igammac special.gammainc special.gammaincc polygamma
        special.polygamma
    """,
    "computed in double precision, so that a float's tail keeps its digits": "special.ndtr",
    "integers lie where the inverse is infinite or undefined: the branch for rare arguments": """
        special.ndtri
    """,
    "lgamma for each dimension, then a sum of them": "mvlgamma special.multigammaln",
    "the complex exponential of the C library, element by element": """
        sigmoid nn.functional.sigmoid nn.functional.silu _foreach_sigmoid
    """,
    "the complex form of the functor is a scalar loop": "lerp _foreach_lerp",
    "a scalar loop over the degree for each element": """
        special.hermite_polynomial_he special.laguerre_polynomial_l special.legendre_polynomial_p
    """,
    "complex products of a matrix and a vector go through the blocks of matrix products": """
        mv addmv einsum....i,i->...
    """,
    "over a dimension that is not the last complex numbers are taken one by one": "sum mean prod",
    "LAPACK of OpenBLAS on small or complex matrices": """
        linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.ldl_factor geqrf
    """,
    "the taps of every point are found by one general scalar routine": """
        grid_sampler_2d grid_sampler_3d nn.functional.grid_sample
    """,
    "rows of some tens or hundreds of elements, for each of which the iterator pays": """
        kron outer addr complex nn.functional.prelu
    """,
    "keys and positions are sorted together, though the positions are not wanted": "msort",
    "reversed in steps of 16 bytes": "flip fliplr rot90",
    "every divisor is compared with zero in a scalar loop": "floor_divide",
    "not examined yet": """
        char corrcoef cov cumsum _foreach_powsum full_like gather histogram histogramdd index_add
        linalg.vander lu_unpack nn.functional.affine_grid nn.functional.conv3d
        nn.functional.ctc_loss nn.functional.embedding_bag nn.functional.hardswish
        nn.functional.max_pool1d nn.functional.max_unpool1d nn.functional.max_unpool2d
        nn.functional.max_unpool3d nn.functional.multi_margin_loss nn.functional.nll_loss
        nn.functional.one_hot nn.functional.rrelu segment_reduce true_divide unique_consecutive
        unravel_index vander
    """,
}

CAUSES = {name: cause for cause, names in _CAUSES.items() for name in names.split()}
