// ATen's name for layouts.
#pragma once
#include <c10/core/Layout.h>
