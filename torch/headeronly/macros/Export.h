// Export macros, for code that links with no part of this library.
#pragma once
#include <c10/macros/Macros.h>
