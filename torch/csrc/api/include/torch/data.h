// Datasets, samplers, transforms and the data loader.
#pragma once
#include <torch/data/dataloader.h>
#include <torch/data/datasets.h>
#include <torch/data/samplers.h>
#include <torch/data/transforms.h>

namespace torch::data {
using datasets::BatchDataset; // NOLINT: an old name of the interface
using datasets::Dataset;      // NOLINT
} // namespace torch::data
