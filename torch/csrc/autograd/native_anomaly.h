// The record of a node's origin that programs without Python have.
#pragma once
#include <torch/csrc/autograd/node.h>

namespace torch::autograd {

std::unique_ptr<AnomalyRecord> make_native_anomaly_record();

} // namespace torch::autograd
