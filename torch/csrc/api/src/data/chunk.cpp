// Which options of a chunked dataset make sense.
#include <torch/data/datasets/chunk.h>

namespace torch::data::datasets {

void ChunkDatasetOptions::check() const {
  const struct {
    bool holds;
    const char* otherwise;
  } rules[] = {
      {preloader_count() != 0,
       "Preloader count is 0. At least one preloader needs to be specified."},
      {batch_size() != 0, "Batch size is 0. A positive batch size needs to be specified."},
      {cache_size() != 0, "Cache size is 0. A positive cache size needs to be specified."},
      {batch_size() <= cache_size(), "Cache size is less than batch size. Cache needs to be large "
                                     "enough to hold at least one batch."},
      {cross_chunk_shuffle_count() != 0, "cross_chunk_shuffle_count needs to be greater than 0."},
  };
  for (const auto& rule : rules) TORCH_CHECK(rule.holds, rule.otherwise);
}

} // namespace torch::data::datasets
