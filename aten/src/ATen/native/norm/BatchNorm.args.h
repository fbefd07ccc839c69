// The arguments of BatchNorm.cuh. T is the type of the input, A that of sums, parameters and
// statistics; the host, which only passes addresses on, says void for both.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

// How the values of a channel lie in a tensor whose channels stand at place 1: planes of one
// channel after the other, or (channels last) rows of all channels.
struct ChannelNumbers {
  int64_t samples, channels, plane;
  int64_t parts, part;   // a channel is folded in so many parts of so many values
  int64_t channels_last; // x is (samples, plane, channels)
  int64_t small;         // all places are below 2^31
  int64_t row_lanes;     // lanes of a warp that take a row of channels; the others take more rows
  Divider by_plane, by_channels;
};
CRESSET_LAYOUT(ChannelNumbers, 88, by_channels, 76);

// The parts of 32 channels are joined by so many threads each.
inline constexpr int kJoiningThreads = 32;
// Rows of channels that a thread applies coefficients to: it reads these once.
inline constexpr int kAppliedRows = 4;

template <class T> struct MomentArgs { const T* x; };
// Where `rectified` is given the gradient counts only where it is above zero.
template <class T, class A> struct GradientArgs {
  const T *x, *grad, *rectified;
  const A* mean;
};
using GradientPointers = GradientArgs<void, void>;
CRESSET_LAYOUT(GradientPointers, 32, mean, 24);

// Of what a pointer is null, nothing is read or written.
template <class A> struct ForwardCoefficients {
  const A *weight, *bias;
  A *running_mean, *running_var, *save_mean, *save_invstd, *scale, *shift;
  double eps, momentum;
};
using ForwardPointers = ForwardCoefficients<void>;
CRESSET_LAYOUT(ForwardPointers, 80, momentum, 72);

template <class A> struct BackwardCoefficients {
  const A *weight, *mean, *invstd;
  A *grad_weight, *grad_bias, *scale, *slope, *offset;
  int64_t training;
};
using BackwardPointers = BackwardCoefficients<void>;
CRESSET_LAYOUT(BackwardPointers, 72, training, 64);

template <class A> struct Slopes { const A *mean, *scale, *slope, *offset; };
using SlopePointers = Slopes<void>;
CRESSET_LAYOUT(SlopePointers, 32, offset, 24);

} // namespace at::device
