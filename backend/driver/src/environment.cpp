// Numbers out of environment variables, and what to say about those that are none.
#include "driver/src/environment.h"

#include <cerrno>
#include <cstdlib>

namespace refnpu::driver {

size_t number_from_environment(const char* variable, size_t fallback, size_t lowest, size_t highest,
                               std::string* error) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return fallback;
  char* end = nullptr;
  errno = 0;
  unsigned long long value = std::strtoull(text, &end, 10);
  if (errno == 0 && *end == '\0' && text[0] != '-' && value >= lowest && value <= highest) return value;
  *error = std::string(variable) + "='" + text + "': expected a whole number from " + std::to_string(lowest) + " to " +
           std::to_string(highest);
  return fallback;
}

}  // namespace refnpu::driver
