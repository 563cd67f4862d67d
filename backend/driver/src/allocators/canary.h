// Bytes around a block that nobody may write: painting them, and telling what was written over.
#pragma once

#include <string>

#include "driver/src/block.h"

namespace refnpu::driver {

// Paints [from, to).
void paint(char* from, const char* to);

// Looks at [left, start of the block) and [end of the block, right). Says what is damaged, and paints that anew.
std::string damage_around(const Block& block, char* left, const char* right);

}  // namespace refnpu::driver
