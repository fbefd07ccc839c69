// ATen's name for devices.
#pragma once
#include <c10/core/Device.h>
