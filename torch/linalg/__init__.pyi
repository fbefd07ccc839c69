# Linear algebra: the operators under the names that torch.linalg gives them.

from torch._C import _LinAlgError as LinAlgError
from torch._C._linalg import linalg_cholesky as cholesky
from torch._C._linalg import linalg_cholesky_ex as cholesky_ex
from torch._C._linalg import linalg_cond as cond
from torch._C._linalg import linalg_cross as cross
from torch._C._linalg import linalg_det as det
from torch._C._linalg import linalg_diagonal as diagonal
from torch._C._linalg import linalg_eig as eig
from torch._C._linalg import linalg_eigh as eigh
from torch._C._linalg import linalg_eigvals as eigvals
from torch._C._linalg import linalg_eigvalsh as eigvalsh
from torch._C._linalg import linalg_householder_product as householder_product
from torch._C._linalg import linalg_inv as inv
from torch._C._linalg import linalg_inv_ex as inv_ex
from torch._C._linalg import linalg_ldl_factor as ldl_factor
from torch._C._linalg import linalg_ldl_factor_ex as ldl_factor_ex
from torch._C._linalg import linalg_ldl_solve as ldl_solve
from torch._C._linalg import linalg_lstsq as lstsq
from torch._C._linalg import linalg_lu as lu
from torch._C._linalg import linalg_lu_factor as lu_factor
from torch._C._linalg import linalg_lu_factor_ex as lu_factor_ex
from torch._C._linalg import linalg_lu_solve as lu_solve
from torch._C._linalg import linalg_matmul as matmul
from torch._C._linalg import linalg_matrix_exp as matrix_exp
from torch._C._linalg import linalg_matrix_norm as matrix_norm
from torch._C._linalg import linalg_matrix_power as matrix_power
from torch._C._linalg import linalg_matrix_rank as matrix_rank
from torch._C._linalg import linalg_multi_dot as multi_dot
from torch._C._linalg import linalg_norm as norm
from torch._C._linalg import linalg_pinv as pinv
from torch._C._linalg import linalg_qr as qr
from torch._C._linalg import linalg_slogdet as slogdet
from torch._C._linalg import linalg_solve as solve
from torch._C._linalg import linalg_solve_ex as solve_ex
from torch._C._linalg import linalg_solve_triangular as solve_triangular
from torch._C._linalg import linalg_svd as svd
from torch._C._linalg import linalg_svdvals as svdvals
from torch._C._linalg import linalg_tensorinv as tensorinv
from torch._C._linalg import linalg_tensorsolve as tensorsolve
from torch._C._linalg import linalg_vander as vander
from torch._C._linalg import linalg_vecdot as vecdot
from torch._C._linalg import linalg_vector_norm as vector_norm

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]
