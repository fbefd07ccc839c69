// Tells the tensor library where the package with LAPACK is installed.
#pragma once

namespace torch::python {
void install_lapack_finder();
} // namespace torch::python
