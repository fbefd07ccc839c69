// Several tensors as one vector, and back.
#pragma once
#include <ATen/ATen.h>

namespace torch::utils {

inline at::Tensor flatten_dense_tensors(at::TensorList tensors) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& t : tensors) flat.push_back(t.contiguous().view({-1}));
  return at::cat(flat);
}
// Views of `flat` with the shapes of `tensors`. A tensor without elements gets memory of its own:
// it must not share that of others when it grows.
inline std::vector<at::Tensor> unflatten_dense_tensors(const at::Tensor& flat,
                                                       at::TensorList tensors) {
  std::vector<at::Tensor> out;
  int64_t at = 0;
  for (const at::Tensor& t : tensors) {
    if (t.numel() == 0)
      out.push_back(at::empty(t.sizes(), flat.options()));
    else
      out.push_back(flat.narrow(0, at, t.numel()).view(t.sizes()));
    at += t.numel();
  }
  return out;
}

} // namespace torch::utils
