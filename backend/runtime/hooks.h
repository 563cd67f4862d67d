// What torch's core asks of the device through its hooks.
#pragma once

namespace refnpu {

void register_hooks();  // once, when the module is loaded

}  // namespace refnpu
