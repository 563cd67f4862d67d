// What torch's core asks of the device through its hooks.
#pragma once

#include "refnpu/export.h"

namespace refnpu {

REFNPU_API void register_hooks();  // once, when the module is loaded

}  // namespace refnpu
