// Which ways of computing scaled_dot_product_attention are allowed: torch.nn.attention.sdpa_kernel
// and the switches of torch.backends.cuda. Process-wide, as those switches are.
#pragma once
#include <cstdint>

#include <c10/macros/Macros.h>

namespace at {

// Bit numbers as Python's SDPBackend numbers them.
enum SdpBackend : uint32_t { kSdpMath = 0, kSdpFlash, kSdpEfficient, kSdpCudnn, kSdpOverrideable };
constexpr uint32_t kAllSdpBackends = 31;

TORCH_API uint32_t allowed_sdp_backends();
TORCH_API void allow_sdp_backends(uint32_t bits);

} // namespace at
