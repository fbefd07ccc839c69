// Elements that are moved and never computed with: kernels have one instance per size and not per
// dtype. Names of instances end in these names.
#pragma once

struct CressetBytes16 {
  unsigned long a, b;
};
using cresset_b1 = unsigned char;
using cresset_b2 = unsigned short;
using cresset_b4 = unsigned;
using cresset_b8 = unsigned long;
using cresset_b16 = CressetBytes16;
