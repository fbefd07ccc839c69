// The keys that a thread adds to and takes from every dispatch, under the names of the interface.
#pragma once
#include <c10/core/TensorImpl.h>

namespace c10 {

constexpr DispatchKeySet autograd_dispatch_keyset = kAutogradKeys;

namespace impl {

using c10::ExcludeDispatchKeyGuard;
using c10::IncludeDispatchKeyGuard;

struct LocalDispatchKeySet {
  DispatchKeySet included_;
  DispatchKeySet excluded_;
};
// Tensors carry ADInplaceOrView themselves, those made in inference mode do not: as if each thread
// added the key unless it is in that mode.
inline LocalDispatchKeySet tls_local_dispatch_key_set() {
  auto included = DispatchKeySet::from_raw(tls_dispatch_keys.included);
  if (!tls_autograd_state.inference_mode) included = included.add(DispatchKey::ADInplaceOrView);
  return {included, DispatchKeySet::from_raw(tls_dispatch_keys.excluded)};
}
inline bool tls_is_dispatch_key_excluded(DispatchKey key) {
  return tls_local_dispatch_key_set().excluded_.has(key);
}
inline bool tls_is_dispatch_key_included(DispatchKey key) {
  return tls_local_dispatch_key_set().included_.has(key);
}
// All of the keys.
inline bool tls_is_dispatch_keyset_excluded(DispatchKeySet keys) {
  return (keys - tls_local_dispatch_key_set().excluded_).empty();
}
inline bool tls_is_dispatch_keyset_included(DispatchKeySet keys) {
  return (keys - tls_local_dispatch_key_set().included_).empty();
}

} // namespace impl
} // namespace c10
