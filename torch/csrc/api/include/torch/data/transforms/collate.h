// A batch of examples made one value.
#pragma once
#include <torch/data/example.h>
#include <torch/data/transforms/lambda.h>

namespace torch::data::transforms {

template <class T, class BatchType = std::vector<T>> using Collation = BatchTransform<BatchType, T>;
template <class T, class BatchType = std::vector<T>> using Collate = BatchLambda<BatchType, T>;

} // namespace torch::data::transforms
