// What blocks are filled with when they are given out and when they come back.
#pragma once

#include <string>
#include <string_view>

#include "driver/src/block.h"

namespace refnpu::driver {

void fill_fresh(const Block& block);
void fill_freed(const Block& block);

// Chooses a fill by name (none, zero, nan, 0xAB, random:SEED). Returns what is wrong with the name; empty when it is
// known.
std::string set_fill_of_fresh(std::string_view name);
std::string set_fill_of_freed(std::string_view name);

// What is wrong with REFNPU_FILL_FRESH or REFNPU_FILL_FREED; empty when nothing is.
const std::string& fill_environment_error();

}  // namespace refnpu::driver
