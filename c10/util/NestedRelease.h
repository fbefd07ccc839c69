// Ends of objects that own one another in long chains: memory borrowed from an array that was made
// from a tensor that borrowed from an array, and so on. Each end runs inside the one before, and a
// hundred thousand of them are more than a stack holds. Owners that can form such chains let go
// through release_nested, which goes a few levels deep and then leaves the rest to the outermost
// call.
#pragma once
#include <c10/macros/Macros.h>

namespace c10 {

// Calls end(object): now, or from the outermost release_nested of this thread when this one is deep
// inside of it. `end` must not throw. Any thread; locks that `end` needs it takes itself.
C10_API void release_nested(void (*end)(void* object), void* object) noexcept;

} // namespace c10
