// Functionalisation: programs without writes. An in-place or out= operator becomes its functional
// form, whose result takes the place of the tensor's value. Tensors that share memory share an
// Alias, which has the value of that memory as one tensor; each remembers the views that lead from
// there to itself. A write to one is carried back to the Alias, view by view, when the next of them
// is used, and the others are made anew from it.
//
// Two kinds of wrapper tensors use this engine: those of the key Functionalize
// (FunctionalTensor.h) and those of a level of torch.func.functionalize (functorch/Level.h). A
// Space is what the engine knows of the kind.
#pragma once
#include <memory>

#include <ATen/core/Dispatcher.h>
#include <ATen/core/FunctionSchema.h>
#include <ATen/core/IValue.h>

namespace at::functional {

// One view operator with its arguments but the tensor.
struct ViewStep {
  const OperatorEntry* view; // as the program called it
  const OperatorEntry* run;  // what is run: the same, or its copying form
  Stack args;                // args[0] is empty
  size_t output = 0;         // which result, of an operator with several
};

// A value of some tensor of an Alias that its base does not account for yet.
struct PendingWrite {
  Tensor value;
  std::vector<ViewStep> steps;
};

// Memory that tensors share.
struct TORCH_API Alias {
  explicit Alias(const Tensor& first);

  Tensor base;
  std::vector<PendingWrite> pending;
  uint64_t generation = 0; // writes that the base accounts for
  bool frozen = false;
  // How the memory was laid out before anything was written: what as_strided means.
  c10::DimVector sizes, strides;
  bool is_strided_memory = false;
  // The storage all tensors of the alias have: it has a size and an identity, no data.
  Storage storage;
  size_t first_nbytes = 0;
  // Counts for those who copy writes back to inputs.
  uint64_t writes = 0, hidden_writes = 0, writes_without_grad = 0;
  uint64_t storage_changes = 0, storage_resizes = 0;
};

// What is known of one tensor.
struct Cell {
  Tensor value;
  std::shared_ptr<Alias> alias;
  std::vector<ViewStep> steps; // from the alias' base to this tensor
  uint64_t seen = 0;           // generation of the alias that the value accounts for
  bool metadata_written = false;
  bool storage_changed = false;
  bool one_of_many = false; // made by a view operator with several results
};

class TORCH_API Space {
 public:
  virtual ~Space() = default;
  // The cell of a tensor of this space, or null.
  virtual Cell* cell(const Tensor& t) const = 0;
  // A tensor of this space with a cell, whose geometry is that of `like`.
  virtual Tensor make(Cell cell, const Tensor& like) const = 0;
  // The value of a cell was replaced. The tensor takes its shape from `like`, unless it is null.
  virtual void changed(const Tensor& t, Cell& cell, const Tensor* like) const = 0;
  // `out` was made as a view of `of`, one of several where `many`.
  virtual void viewed(const Tensor& of, const Tensor& out, bool many) const;
  // `out` is `of` without its history: a write to one is seen by the other, and no gradient is.
  virtual void detached(const Tensor& of, const Tensor& out) const;
  // Whether results of an operator become tensors of the space; `any`: one of its tensor arguments
  // is such a tensor, `tensors`: it has tensor arguments at all.
  virtual bool wraps_results(bool any, bool tensors) const = 0;
  virtual bool copies_views() const = 0;
  // Keys that are off while operators run on the values.
  virtual DispatchKeySet keys_off() const = 0;
};

// A new tensor of the space, which shares memory with no other.
TORCH_API Tensor wrap(const Tensor& value, const Space& space);
// Brings a tensor up to date with writes to what it shares memory with; its cell, or null.
TORCH_API Cell* sync(const Tensor& t, const Space& space);
// Replaces the value alone; commit() then makes it a write that others see.
TORCH_API void replace(const Tensor& t, const Tensor& value, const Space& space);
TORCH_API void commit(const Tensor& t, const Space& space);

// Runs the operator on the arguments that begin at `from` and leaves the results in their place.
TORCH_API void run(const OperatorEntry& op, Stack& stack, size_t from, const Space& space);

// The operator that computes what an in-place or out= operator writes, with the same arguments but
// for the outputs; null when there is none.
TORCH_API const OperatorEntry* functional_of(const OperatorEntry& op);
// Whether the operator's only definition is in terms of others.
TORCH_API bool is_composite(const OperatorEntry& op);
// Runs a view of a cell's chain on another tensor.
TORCH_API Tensor apply(const ViewStep& step, const Tensor& t);
// The copying form of a view operator, or the operator itself where there is none.
TORCH_API const OperatorEntry* copying_form(const OperatorEntry& op);

// Replaces each tensor in a value by f(tensor).
template <class F> void map_tensors(IValue& value, const F& f) {
  if (value.isTensor()) {
    value = IValue(f(value.toTensor()));
  } else if (value.isTensorList()) {
    std::vector<Tensor> list = value.toTensorList();
    for (Tensor& t : list)
      if (t.defined()) t = f(t);
    value = IValue(std::move(list));
  } else if (value.isOptionalTensorList()) {
    auto list = value.toOptionalTensorList();
    for (auto& t : list)
      if (t && t->defined()) t = f(*t);
    value = IValue(std::move(list));
  }
}
template <class F> void each_tensor(const IValue& value, const F& f) {
  if (value.isTensor()) {
    f(value.toTensor());
  } else if (value.isTensorList()) {
    for (const Tensor& t : value.toTensorList())
      if (t.defined()) f(t);
  } else if (value.isOptionalTensorList()) {
    for (const auto& t : value.toOptionalTensorList())
      if (t && t->defined()) f(*t);
  }
}

} // namespace at::functional
