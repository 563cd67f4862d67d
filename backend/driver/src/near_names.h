// The names nearest to a misspelt one, for error messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace refnpu {

size_t edit_distance(std::string_view left, std::string_view right);

// "unknown WHAT 'NAME'; did you mean 'a'?; known: a, b, c"
std::string unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known);

}  // namespace refnpu
