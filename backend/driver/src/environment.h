// Numbers out of environment variables.
#pragma once

#include <cstddef>
#include <string>

namespace refnpu::driver {

// The number in an environment variable, or `fallback`; what is wrong with it goes to `error`, which is left alone
// else.
size_t number_from_environment(const char* variable, size_t fallback, size_t lowest, size_t highest,
                               std::string* error);

}  // namespace refnpu::driver
