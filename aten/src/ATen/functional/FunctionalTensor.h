// Tensors of the key Functionalize: what torch._to_functional_tensor makes, and what every factory
// makes while functionalisation is enabled on the thread.
//
// The wrapper has the shape that the program sees; its value may be a copy where the program has a
// view. Its storage is that of its Alias: it tells who shares memory with whom, and has no data.
#pragma once
#include <ATen/functional/Engine.h>

namespace at::functional {

class TORCH_API FunctionalImpl final : public TensorImpl {
 public:
  FunctionalImpl(Cell cell, const Tensor& like);
  // Takes shape, dtype and device of a tensor.
  void look_like(const Tensor& like);
  void copy_metadata_from(const TensorImpl& from) override;
  c10::intrusive_ptr<TensorImpl> shallow_copy() const override;

  Cell cell;

 protected:
  void release_resources() override;
};

// Null when the tensor is none.
TORCH_API FunctionalImpl* functional_impl(const Tensor& t);
// The space of these tensors on this thread.
TORCH_API const Space& tensor_space();

TORCH_API Tensor to_functional(const Tensor& t);

// Whether views are run as views or as copies; a setting of the thread.
TORCH_API bool reapplies_views();
TORCH_API bool set_reapplies_views(bool on); // returns the old setting
// Whether each operator is checked: that what a functional tensor shows is what its value has, and
// that it belongs to the memory it says. A setting of the thread.
TORCH_API bool set_crosschecks(bool on); // returns the old setting
// Factories make functional tensors while enabled.
TORCH_API bool is_enabled();
TORCH_API void set_enabled(bool on);

// The tensor now shares the memory of `source`, as set_ has it.
TORCH_API void set_memory(const Tensor& t, const Tensor& source);
// The tensor's memory becomes as many bytes long.
TORCH_API void resize_memory(const Tensor& t, size_t nbytes);

} // namespace at::functional
