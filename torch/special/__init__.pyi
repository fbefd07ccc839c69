# Special functions: the operators under the names that torch.special gives them.

from torch._C._special import special_airy_ai as airy_ai
from torch._C._special import special_bessel_j0 as bessel_j0
from torch._C._special import special_bessel_j1 as bessel_j1
from torch._C._special import special_bessel_y0 as bessel_y0
from torch._C._special import special_bessel_y1 as bessel_y1
from torch._C._special import special_chebyshev_polynomial_t as chebyshev_polynomial_t
from torch._C._special import special_chebyshev_polynomial_u as chebyshev_polynomial_u
from torch._C._special import special_chebyshev_polynomial_v as chebyshev_polynomial_v
from torch._C._special import special_chebyshev_polynomial_w as chebyshev_polynomial_w
from torch._C._special import special_digamma as digamma
from torch._C._special import special_entr as entr
from torch._C._special import special_erf as erf
from torch._C._special import special_erfc as erfc
from torch._C._special import special_erfcx as erfcx
from torch._C._special import special_erfinv as erfinv
from torch._C._special import special_exp2 as exp2
from torch._C._special import special_expit as expit
from torch._C._special import special_expm1 as expm1
from torch._C._special import special_gammainc as gammainc
from torch._C._special import special_gammaincc as gammaincc
from torch._C._special import special_gammaln as gammaln
from torch._C._special import special_hermite_polynomial_h as hermite_polynomial_h
from torch._C._special import special_hermite_polynomial_he as hermite_polynomial_he
from torch._C._special import special_i0 as i0
from torch._C._special import special_i0e as i0e
from torch._C._special import special_i1 as i1
from torch._C._special import special_i1e as i1e
from torch._C._special import special_laguerre_polynomial_l as laguerre_polynomial_l
from torch._C._special import special_legendre_polynomial_p as legendre_polynomial_p
from torch._C._special import special_log1p as log1p
from torch._C._special import special_log_ndtr as log_ndtr
from torch._C._special import special_log_softmax as log_softmax
from torch._C._special import special_logit as logit
from torch._C._special import special_logsumexp as logsumexp
from torch._C._special import special_modified_bessel_i0 as modified_bessel_i0
from torch._C._special import special_modified_bessel_i1 as modified_bessel_i1
from torch._C._special import special_modified_bessel_k0 as modified_bessel_k0
from torch._C._special import special_modified_bessel_k1 as modified_bessel_k1
from torch._C._special import special_multigammaln as multigammaln
from torch._C._special import special_ndtr as ndtr
from torch._C._special import special_ndtri as ndtri
from torch._C._special import special_polygamma as polygamma
from torch._C._special import special_psi as psi
from torch._C._special import special_round as round
from torch._C._special import special_scaled_modified_bessel_k0 as scaled_modified_bessel_k0
from torch._C._special import special_scaled_modified_bessel_k1 as scaled_modified_bessel_k1
from torch._C._special import (
    special_shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t,
)
from torch._C._special import (
    special_shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u,
)
from torch._C._special import (
    special_shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v,
)
from torch._C._special import (
    special_shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w,
)
from torch._C._special import special_sinc as sinc
from torch._C._special import special_softmax as softmax
from torch._C._special import special_spherical_bessel_j0 as spherical_bessel_j0
from torch._C._special import special_xlog1py as xlog1py
from torch._C._special import special_xlogy as xlogy
from torch._C._special import special_zeta as zeta

__all__ = [
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "sinc",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]
