// torch::data::make_data_loader: a loader for a dataset, with a sampler where it needs one.
#pragma once
#include <torch/data/dataloader/stateful.h>
#include <torch/data/dataloader/stateless.h>
#include <torch/data/samplers/random.h>

namespace torch::data {

template <class Dataset, class Sampler>
std::enable_if_t<!Dataset::is_stateful, std::unique_ptr<StatelessDataLoader<Dataset, Sampler>>>
make_data_loader(Dataset dataset, Sampler sampler, DataLoaderOptions options) {
  return std::make_unique<StatelessDataLoader<Dataset, Sampler>>(
      std::move(dataset), std::move(sampler), std::move(options));
}

namespace detail {
template <class Sampler> Sampler sampler_of(std::optional<size_t> size) {
  if (!size) throw c10::Error("Expected the dataset to be sized in order to construct the Sampler");
  return Sampler(*size);
}
template <class Dataset, class Sampler> using Sampled =
    std::enable_if_t<!Dataset::is_stateful && std::is_constructible_v<Sampler, size_t>,
                     std::unique_ptr<StatelessDataLoader<Dataset, Sampler>>>;
} // namespace detail

// With a sampler made for the size of the dataset.
template <class Sampler = samplers::RandomSampler, class Dataset> detail::Sampled<Dataset, Sampler>
make_data_loader(Dataset dataset, DataLoaderOptions options = {}) {
  Sampler sampler = detail::sampler_of<Sampler>(dataset.size());
  return make_data_loader(std::move(dataset), std::move(sampler), options);
}

template <class Dataset, class = std::enable_if_t<Dataset::is_stateful>>
std::unique_ptr<StatefulDataLoader<Dataset>>
make_data_loader(Dataset dataset, DataLoaderOptions options = DataLoaderOptions()) {
  return std::make_unique<StatefulDataLoader<Dataset>>(std::move(dataset), std::move(options));
}

} // namespace torch::data
