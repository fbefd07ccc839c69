// Function transforms (vmap, grad, jvp): the stack of levels and the tensors that belong to them.
//
// Note [Levels by wrapper]
// A transform pushes a level and wraps its inputs. An operator is interpreted by the newest level
// among its arguments, which unwraps that level and calls the operator on what is inside; so the
// levels below see an ordinary call and nest in any order. Wrappers carry dispatch keys that no
// other tensor has, and the kernels for these keys are registered when the first level is pushed:
// programs without transforms pay nothing.
//
//   vmap  a wrapper hides one dimension of its value, which each operator's rule carries along
//         (BatchRules.cpp)
//   grad  a wrapper has an autograd history of its own: the operator runs through the Autograd
//         kernels with the wrappers of this level, and below them on the values
//   jvp   a wrapper holds a value and its tangent
//   functionalize  a wrapper holds a value that in-place operators replace (Functionalize.cpp)
//
// A tensor that an operator makes inside of a grad or jvp level from tensors outside of it belongs
// to the level, so that what the function differentiates may be written to it (Fresh in
// Interpret.cpp). Below a level, on its values, this must not happen: see BelowLevel.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/TransformQueries.h>

namespace at::functional {
struct Cell; // what functionalisation knows of a tensor
}

namespace at::functorch {

enum class LevelKind : uint8_t { Vmap, Grad, Jvp, Functionalize };
// What random operators do under vmap: refuse, draw once for all, or draw for each.
enum class Randomness : uint8_t { Error, Same, Different };

struct TORCH_API Level final : c10::intrusive_ptr_target {
  LevelKind kind = LevelKind::Grad;
  uint64_t id = 0;   // grows with every level ever pushed
  int64_t depth = 0; // place in the stack, 1 for the outermost: the number users see
  bool alive = true; // false once popped; wrappers may outlive their level
  int64_t batch_size = 0;
  Randomness randomness = Randomness::Error;
  bool removes_views = false; // of a functionalize level: views become copies
  // Modes outside of the transform, which hold for the levels below.
  bool grad_mode_outside = true;
};
using LevelPtr = c10::intrusive_ptr<Level>;

// The levels of this thread, outermost first.
TORCH_API const std::vector<LevelPtr>& level_stack();
TORCH_API LevelPtr push_level(LevelKind kind, int64_t batch_size = 0,
                              Randomness randomness = Randomness::Error);
// Pops the newest level, which must be of this kind. Returns its depth.
TORCH_API int64_t pop_level(LevelKind kind);
// The level at a depth; Error when there is none.
TORCH_API const LevelPtr& level_at(int64_t depth);

class TORCH_API WrapperImpl final : public TensorImpl {
 public:
  // `bdim`: the hidden dimension of a vmap level's value; -1 for other levels.
  WrapperImpl(Tensor value, LevelPtr level, int64_t bdim, Tensor tangent = {});
  // Takes geometry and type anew from the value, after an operator changed them.
  void refresh();
  void copy_metadata_from(const TensorImpl& from) override;
  c10::intrusive_ptr<TensorImpl> shallow_copy() const override;

  Tensor value;
  Tensor tangent; // of a jvp level, or undefined
  LevelPtr level;
  int64_t bdim;
  std::shared_ptr<functional::Cell> functional; // of a functionalize level

 protected:
  void release_resources() override;
};

// Null when the tensor belongs to no level.
TORCH_API WrapperImpl* wrapper_of(const Tensor& t);
// Null unless the tensor is a wrapper of just this level.
TORCH_API WrapperImpl* wrapper_at(const Tensor& t, const Level& level);

TORCH_API Tensor wrap_batched(const Tensor& value, int64_t bdim, const LevelPtr& level);
TORCH_API Tensor wrap_grad(const Tensor& value, const LevelPtr& level);
TORCH_API Tensor wrap_jvp(const Tensor& value, const Tensor& tangent, const LevelPtr& level);

// ---- functionalize
TORCH_API Tensor wrap_functional(const Tensor& value, const LevelPtr& level);
// The present value of a tensor of the level, after writes to what it aliases.
TORCH_API Tensor functional_value(const Tensor& t, const LevelPtr& level);
// Whether the tensor, or what it aliases, was written.
TORCH_API bool was_written(const Tensor& t, const LevelPtr& level);

// The keys of wrappers that are dispatched before Autograd, and the one after it.
constexpr DispatchKeySet kFrontKeys{DispatchKey::FuncTorchBatched, DispatchKey::FuncTorchVmapMode,
                                    DispatchKey::FuncTorchGradWrapper};
// While a functionalize level is open every operator looks for it: factories make tensors of it.
constexpr DispatchKey kFunctionalizeMode = DispatchKey::FunctionalizeMode;
constexpr DispatchKey kBackKey = DispatchKey::FuncTorchDynamicLayerBackMode;
// While a grad or jvp level is open operators look whether they make a tensor of it.
constexpr DispatchKey kFreshKey = DispatchKey::FuncTorchDynamicLayerFrontMode;

// A scope for operators on the values of a level: what they make belongs to levels that are older.
class TORCH_API BelowLevel {
 public:
  explicit BelowLevel(const Level& level);
  ~BelowLevel();
  BelowLevel(const BelowLevel&) = delete;
  BelowLevel& operator=(const BelowLevel&) = delete;

 private:
  uint64_t limit_;
  bool included_;
};
// A scope in which no level is open, for work that belongs to no transform.
class TORCH_API LevelsSetAside {
 public:
  LevelsSetAside();
  ~LevelsSetAside();
  LevelsSetAside(const LevelsSetAside&) = delete;
  LevelsSetAside& operator=(const LevelsSetAside&) = delete;

 private:
  std::vector<LevelPtr> levels_;
};
// The newest open grad or jvp level that is older than the level whose values are worked on; null
// where there is none.
TORCH_API LevelPtr level_of_fresh_tensors();

// `t` with dimension `from` moved to `to`.
TORCH_API Tensor move_dim(const Tensor& t, int64_t from, int64_t to);

} // namespace at::functorch
