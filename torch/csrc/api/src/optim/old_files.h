// Files that optimizers of LibTorch wrote before 1.5: no groups and no options, but one list of
// tensors per field ("exp_average_buffers/0", ...), in the order of the parameters.
#pragma once
#include <torch/optim/optimizer.h>

namespace torch::optim::old_files {

// The state of parameter `index` as `found`, in the form in which states are read today; fields
// that old files do not have take the values of `fresh`. False where the file has nothing for it.
bool find_state(serialize::InputArchive& file, size_t index, const OptimizerParamState& fresh,
                serialize::InputArchive& found);

} // namespace torch::optim::old_files
