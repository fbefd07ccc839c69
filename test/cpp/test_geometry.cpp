// Sizes and strides of a tensor: of a new one, and when they are given in the tensor's own lists.

#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace {

const c10::Device kCpu(c10::kCPU);

c10::intrusive_ptr<c10::TensorImpl> impl_of(c10::IntArrayRef sizes) {
  return c10::make_intrusive<c10::TensorImpl>(c10::make_storage(4096, kCpu),
                                              c10::DispatchKeySet(c10::DispatchKey::CPU),
                                              c10::kFloat, kCpu, sizes, c10::checked_numel(sizes));
}

TEST(Geometry, NewTensorIsContiguousAtEveryRank) {
  for (size_t rank = 0; rank <= 8; ++rank) {
    const std::vector<int64_t> sizes(rank, 2);
    const auto impl = impl_of(sizes);
    EXPECT_EQ(impl->sizes(), c10::IntArrayRef(sizes));
    EXPECT_EQ(impl->strides(), c10::IntArrayRef(c10::contiguous_strides(sizes)));
    EXPECT_EQ(impl->numel(), int64_t{1} << rank);
    EXPECT_TRUE(impl->is_contiguous() && impl->is_non_overlapping_and_dense());
  }
  // A new tensor of one channel is contiguous in both formats.
  EXPECT_TRUE(impl_of({2, 1, 3, 3})->is_contiguous(c10::MemoryFormat::ChannelsLast));
  EXPECT_FALSE(impl_of({2, 2, 3, 3})->is_contiguous(c10::MemoryFormat::ChannelsLast));
  EXPECT_THROW(impl_of(std::vector<int64_t>(2000, 1)), c10::Error);
}

TEST(Geometry, TensorsOwnListsMayBeGiven) {
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{2, 3}, std::vector<int64_t>{2, 3, 1, 2, 1, 2, 2}}) {
    const auto impl = impl_of(sizes);
    const std::vector<int64_t> strides = impl->strides().vec();
    impl->set_geometry(impl->strides(), impl->sizes(), 0);
    EXPECT_EQ(impl->sizes(), c10::IntArrayRef(strides));
    EXPECT_EQ(impl->strides(), c10::IntArrayRef(sizes));
  }
  // One dimension less: the strides move over the sizes.
  const auto impl = impl_of({2, 3, 4});
  impl->set_geometry(impl->sizes().slice(1, 2), impl->strides().slice(1, 2), 12);
  EXPECT_EQ(impl->sizes(), c10::IntArrayRef({3, 4}));
  EXPECT_EQ(impl->strides(), c10::IntArrayRef({4, 1}));
}

} // namespace
