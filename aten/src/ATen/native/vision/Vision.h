// The detection operators that torchvision's Python code calls: non-maximum suppression, pooling of
// regions of interest and deformable convolution. Its wheels carry them compiled for another
// library, so they are written here; torch/csrc/autograd/vision.cpp registers them under
// "torchvision::" when that package asks for its own. Shapes are computed once: the functions named
// *_shape allocate the result on the input's device, for the CPU and the meta device alike.
#pragma once
#include <tuple>
#include <type_traits>
#include <vector>

#include <ATen/core/Tensor.h>

namespace at::native::vision {

// What sums of T are kept in.
template <class T> using wide_t = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Sizes of a pooling of regions: `image` is [n, c, h, w], `rois` [k, 5] with the index of the image
// and two corners in each row.
struct RoiSizes {
  int64_t n, c, h, w; // of the images
  int64_t k, out_c;   // regions and channels of the result
  int64_t ph, pw;     // bins
  int64_t plane() const { return h * w; }
  int64_t bins() const { return ph * pw; }
};

// How a region of interest is sampled. `position_sensitive`: bin (i, j) of channel c reads the
// input's channel (c * ph + i) * pw + j.
struct RoiSampling {
  double spatial_scale;
  int64_t sampling_ratio; // points per bin and direction, <= 0: as many as pixels
  bool aligned;           // coordinates are shifted by half a pixel
  bool position_sensitive;
};

TORCH_API Tensor nms_shape(const Tensor& dets, const Tensor& scores, double iou_threshold);
TORCH_API Tensor nms_cpu(const Tensor& dets, const Tensor& scores, double iou_threshold);

// Checks the arguments of a forward operator and gives its sizes.
TORCH_API RoiSizes roi_sizes(const Tensor& input, const Tensor& rois, int64_t pooled_height,
                             int64_t pooled_width, bool position_sensitive, const char* op);
// The same for a backward operator, from the numbers it is given.
TORCH_API RoiSizes roi_grad_sizes(const Tensor& grad, const Tensor& rois, int64_t pooled_height,
                                  int64_t pooled_width, IntArrayRef image, bool position_sensitive,
                                  const char* op);
TORCH_API Tensor roi_result(const Tensor& input, const RoiSizes& sizes, ScalarType dtype);
TORCH_API Tensor roi_grad_result(const Tensor& grad, const RoiSizes& sizes);
// The image each region belongs to; IndexError for one that does not exist.
std::vector<int64_t> roi_images(const Tensor& rois, const RoiSizes& sizes, const char* op);

TORCH_API Tensor roi_align_cpu(const Tensor& input, const Tensor& rois, const RoiSizes& sizes,
                               const RoiSampling& sampling);
TORCH_API Tensor roi_align_backward_cpu(const Tensor& grad, const Tensor& rois,
                                        const RoiSizes& sizes, const RoiSampling& sampling);
// The maximum of each bin and where it is in its plane (-1 for an empty bin).
TORCH_API std::tuple<Tensor, Tensor> roi_pool_cpu(const Tensor& input, const Tensor& rois,
                                                  const RoiSizes& sizes, double spatial_scale);
TORCH_API Tensor roi_pool_backward_cpu(const Tensor& grad, const Tensor& rois, const Tensor& argmax,
                                       const RoiSizes& sizes);
// The mean of each bin, position sensitive.
TORCH_API Tensor ps_roi_pool_cpu(const Tensor& input, const Tensor& rois, const RoiSizes& sizes,
                                 double spatial_scale);
TORCH_API Tensor ps_roi_pool_backward_cpu(const Tensor& grad, const Tensor& rois,
                                          const RoiSizes& sizes, double spatial_scale);
// The input channel that each element of a position sensitive result came from.
TORCH_API Tensor channel_mapping_cpu(const RoiSizes& sizes);

struct DeformParams {
  int64_t stride[2], padding[2], dilation[2];
  int64_t groups, offset_groups;
  bool use_mask;
};
TORCH_API Tensor deform_conv2d_shape(const Tensor& input, const Tensor& weight,
                                     const Tensor& offset, const Tensor& mask, const Tensor& bias,
                                     const DeformParams& params);
TORCH_API Tensor deform_conv2d_cpu(const Tensor& input, const Tensor& weight, const Tensor& offset,
                                   const Tensor& mask, const Tensor& bias,
                                   const DeformParams& params);
// Gradients of input, weight, offset, mask and bias.
using DeformGrads = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;
TORCH_API DeformGrads deform_conv2d_backward_cpu(const Tensor& grad, const Tensor& input,
                                                 const Tensor& weight, const Tensor& offset,
                                                 const Tensor& mask, const Tensor& bias,
                                                 const DeformParams& params);

} // namespace at::native::vision
