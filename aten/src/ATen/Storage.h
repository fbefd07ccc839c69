// Where programs look for Storage.
#pragma once
#include <c10/core/Storage.h>
