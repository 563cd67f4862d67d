// Protection: device memory that the host cannot touch outside kernels and copies. On with REFNPU_PROTECT=1.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "driver/src/block.h"

namespace refnpu::driver {

// From `add` to `remove` a device block can be touched in a Window alone. Nothing happens while protection is off.
void protect_add(const Block& block);
void protect_remove(const Block& block);

// While one lives in any thread, every block is open, or the blocks that it names. Windows nest.
class Window {
 public:
  Window();  // on everything, for a kernel, whose pointers nobody knows
  explicit Window(std::initializer_list<Block> blocks);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

 private:
  bool everything_;
  std::vector<Block> blocks_;
};

// What is wrong with REFNPU_PROTECT; empty when nothing is.
const std::string& protect_environment_error();

}  // namespace refnpu::driver
