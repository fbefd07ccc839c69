// The arguments of Upsample.cuh. A is the type of weights; the host, which only passes addresses
// on, says void.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

// A resized axis as a sparse matrix: element o of the result is the sum of weight[k] times element
// place[k], k from first[o] to first[o + 1].
template <class A> struct ResizedAxis {
  const int32_t *first, *place;
  const A* weight;
  int64_t from, to; // sizes
  Divider by_to;
  uint32_t unused;
};
using ResizedAxisPointers = ResizedAxis<void>;
CRESSET_LAYOUT(ResizedAxisPointers, 56, unused, 52);

template <class A> struct ResizeArgs {
  ResizedAxis<A> axis[3];
  int64_t samples, channels;
  int64_t channels_last;         // both sides
  int64_t small;                 // all places are below 2^31
  Divider by_channels, by_plane; // the latter: positions of the result
};
using ResizePointers = ResizeArgs<void>;
CRESSET_LAYOUT(ResizePointers, 224, by_plane, 212);

// One axis by itself: `outer` blocks of axis.from rows of `inner` elements become blocks of
// axis.to.
template <class A> struct ResizeAxisArgs {
  ResizedAxis<A> axis;
  int64_t outer, inner;
  int64_t small; // all places are below 2^31
  Divider by_inner;
  uint32_t unused;
};
using ResizeAxisPointers = ResizeAxisArgs<void>;
CRESSET_LAYOUT(ResizeAxisPointers, 96, unused, 92);

} // namespace at::device
