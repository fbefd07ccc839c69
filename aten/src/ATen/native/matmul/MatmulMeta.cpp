// Shape functions of the matrix products.
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/OutputBuilder.h>
#include <ATen/native/matmul/Native.h>

namespace at::meta {
namespace {
void check_dtypes(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(),
              "expected m1 and m2 to have the same dtype, but got: ",
              c10::info(a.scalar_type()).name, " != ", c10::info(b.scalar_type()).name);
}
void check_product(const Tensor& a, const Tensor& b, const char* a_name, const char* b_name) {
  TORCH_CHECK(a.dim() == 2, a_name, " must be a matrix, got ", a.dim(), "-D tensor");
  TORCH_CHECK(b.dim() == 2, b_name, " must be a matrix, got ", b.dim(), "-D tensor");
  TORCH_CHECK(a.size(1) == b.size(0), "mat1 and mat2 shapes cannot be multiplied (", a.size(0), "x",
              a.size(1), " and ", b.size(0), "x", b.size(1), ")");
  check_dtypes(a, b);
}
void check_self(const Tensor& self, const Tensor& mat, IntArrayRef shape) {
  TORCH_CHECK(self.scalar_type() == mat.scalar_type(),
              "self and mat2 must have the same dtype, but got ", self.scalar_type(), " and ",
              mat.scalar_type());
  const DimVector wide = broadcast_shapes(self.sizes(), shape);
  TORCH_CHECK(IntArrayRef(wide) == shape, "The expanded size of the tensor (",
              shape.empty() ? 0 : shape.back(), ") must match the existing size (",
              self.dim() ? self.sizes().back() : 1, "). Target sizes: ", shape,
              ". Tensor sizes: ", self.sizes());
}
void check_batches(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.dim() == 3, "batch1 must be a 3D tensor");
  TORCH_CHECK(b.dim() == 3, "batch2 must be a 3D tensor");
  TORCH_CHECK(b.size(0) == a.size(0) && b.size(1) == a.size(2),
              "Expected size for first two dimensions of batch2 tensor to be: [", a.size(0), ", ",
              a.size(2), "] but got: [", b.size(0), ", ", b.size(1), "].");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "expected scalar type ", a.scalar_type(),
              " but found ", b.scalar_type());
}
} // namespace

void meta_mm(OutputBuilder& out, const Tensor& self, const Tensor& mat2) {
  check_product(self, mat2, "self", "mat2");
  out.set(0, {self.size(0), mat2.size(1)}, self.scalar_type());
}
void meta_addmm(OutputBuilder& out, const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                const Scalar& beta, const Scalar& alpha) {
  check_product(mat1, mat2, "mat1", "mat2");
  const int64_t shape[2] = {mat1.size(0), mat2.size(1)};
  check_self(self, mat1, shape);
  out.set(0, shape, mat1.scalar_type());
}
void meta_bmm(OutputBuilder& out, const Tensor& self, const Tensor& mat2) {
  check_batches(self, mat2);
  out.set(0, {self.size(0), self.size(1), mat2.size(2)}, self.scalar_type());
}
void meta_baddbmm(OutputBuilder& out, const Tensor& self, const Tensor& batch1,
                  const Tensor& batch2, const Scalar& beta, const Scalar& alpha) {
  check_batches(batch1, batch2);
  const int64_t shape[3] = {batch1.size(0), batch1.size(1), batch2.size(2)};
  check_self(self, batch1, shape);
  out.set(0, shape, batch1.scalar_type());
}
void meta_addbmm(OutputBuilder& out, const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                 const Scalar& beta, const Scalar& alpha) {
  check_batches(batch1, batch2);
  const int64_t shape[2] = {batch1.size(1), batch2.size(2)};
  check_self(self, batch1, shape);
  out.set(0, shape, batch1.scalar_type());
}
void meta_mv(OutputBuilder& out, const Tensor& self, const Tensor& vec) {
  TORCH_CHECK(self.dim() == 2 && vec.dim() == 1, "vector + matrix @ vector expected, got 1, ",
              self.dim(), ", ", vec.dim());
  TORCH_CHECK(self.size(1) == vec.size(0), "size mismatch, got input (", self.size(0), "), mat (",
              self.size(0), "x", self.size(1), "), vec (", vec.size(0), ")");
  TORCH_CHECK(self.scalar_type() == vec.scalar_type(), "expected scalar type ", self.scalar_type(),
              " but found ", vec.scalar_type());
  out.set(0, {self.size(0)}, self.scalar_type());
}
void meta_addmv(OutputBuilder& out, const Tensor& self, const Tensor& mat, const Tensor& vec,
                const Scalar& beta, const Scalar& alpha) {
  TORCH_CHECK(mat.dim() == 2 && vec.dim() == 1 && self.dim() <= 1,
              "vector + matrix @ vector expected, got ", self.dim(), ", ", mat.dim(), ", ",
              vec.dim());
  TORCH_CHECK(mat.size(1) == vec.size(0) &&
                  (self.dim() == 0 || self.size(0) == mat.size(0) || self.size(0) == 1),
              "size mismatch, got input (", self.dim() ? self.size(0) : 1, "), mat (", mat.size(0),
              "x", mat.size(1), "), vec (", vec.size(0), ")");
  TORCH_CHECK(mat.scalar_type() == vec.scalar_type() && self.scalar_type() == vec.scalar_type(),
              "expected scalar type ", mat.scalar_type(), " but found ", vec.scalar_type());
  out.set(0, {mat.size(0)}, mat.scalar_type());
}
namespace {
void check_dot(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.dim() == 1 && b.dim() == 1, "1D tensors expected, but got ", a.dim(), "D and ",
              b.dim(), "D tensors");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(),
              "dot : expected both vectors to have same dtype, but found ", a.scalar_type(),
              " and ", b.scalar_type());
  TORCH_CHECK(a.numel() == b.numel(), "inconsistent tensor size, expected tensor [", a.numel(),
              "] and src [", b.numel(), "] to have the same number of elements, but got ",
              a.numel(), " and ", b.numel(), " elements respectively");
}
} // namespace
void meta_dot(OutputBuilder& out, const Tensor& self, const Tensor& tensor) {
  check_dot(self, tensor);
  out.set(0, {}, self.scalar_type());
}
void meta_vdot(OutputBuilder& out, const Tensor& self, const Tensor& other) {
  check_dot(self, other);
  out.set(0, {}, self.scalar_type());
}
void meta_linear(OutputBuilder& out, const Tensor& input, const Tensor& weight,
                 const std::optional<Tensor>& bias) {
  TORCH_CHECK(input.dim() >= 1, "linear(): input must have at least one dimension");
  TORCH_CHECK(weight.dim() == 2 || weight.dim() == 1,
              "linear(): weight must be a matrix or a vector, got ", weight.dim(), " dimensions");
  const int64_t features = input.sizes().back();
  int64_t rows = 1;
  for (int64_t i = 0; i + 1 < input.dim(); ++i) rows *= input.sizes()[i];
  TORCH_CHECK(features == weight.sizes().back(), "mat1 and mat2 shapes cannot be multiplied (",
              rows, "x", features, " and ", weight.sizes().back(), "x",
              weight.dim() == 2 ? weight.size(0) : 1, ")\n  input's last dimension (", features,
              ") must equal weight's last dimension (", weight.sizes().back(), ")");
  TORCH_CHECK(input.scalar_type() == weight.scalar_type(),
              "mat1 and mat2 must have the same dtype, but got ", input.scalar_type(), " and ",
              weight.scalar_type());
  DimVector shape(input.sizes());
  if (weight.dim() == 2)
    shape.back() = weight.size(0);
  else
    shape.pop_back();
  if (bias && bias->defined()) {
    TORCH_CHECK(bias->scalar_type() == input.scalar_type(),
                "self and mat2 must have the same dtype, but got ", bias->scalar_type(), " and ",
                input.scalar_type());
    const DimVector wide = broadcast_shapes(bias->sizes(), shape);
    TORCH_CHECK(wide == shape, "linear(): bias of shape ", bias->sizes(),
                " does not fit an output of shape ", IntArrayRef(shape));
  }
  out.set(0, shape, input.scalar_type());
}

} // namespace at::meta
