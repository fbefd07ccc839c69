// The keys that a thread adds to and takes from every dispatch, under the names of the interface.
#pragma once
#include <c10/core/DispatchKeySet.h>

namespace c10::impl {

using c10::ExcludeDispatchKeyGuard;
using c10::IncludeDispatchKeyGuard;

struct LocalDispatchKeySet {
  DispatchKeySet included_;
  DispatchKeySet excluded_;
};
inline LocalDispatchKeySet tls_local_dispatch_key_set() {
  return {DispatchKeySet::from_raw(tls_dispatch_keys.included),
          DispatchKeySet::from_raw(tls_dispatch_keys.excluded)};
}
inline bool tls_is_dispatch_key_excluded(DispatchKey key) {
  return tls_local_dispatch_key_set().excluded_.has(key);
}
inline bool tls_is_dispatch_key_included(DispatchKey key) {
  return tls_local_dispatch_key_set().included_.has(key);
}

} // namespace c10::impl
