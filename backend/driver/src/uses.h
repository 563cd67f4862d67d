// The device memory that a piece of work uses, and which pieces of recorded work another one needs.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "driver/src/block.h"

namespace refnpu::driver {

// One block that a piece of work uses.
struct Use {
  Block block;
  bool written = true;
  std::vector<char**> places = {};  // the pointers into the block among the arguments of the work
};

// All blocks that a piece of work uses. It owns the values that were kept for the work.
class Uses {
 public:
  void add(Block block, bool written);
  // Adds the blocks that pointers among the `size` bytes of a kernel's arguments point into. Those that hold one of
  // `reads` are read, all others may be written. The bytes must stay where they are.
  void add_pointers(std::byte* arguments, size_t size, std::span<const void* const> reads);

  bool empty() const { return uses_.empty(); }
  bool touches(const Block& block) const { return find(block) != nullptr; }
  bool writes(const Block& block) const;
  const std::vector<Use>& all() const { return uses_; }

  // Copies the present content of a block and lets the work read the copy, if the work reads the block alone and has no
  // copy yet.
  void keep(const Block& block);

 private:
  const Use* find(const Block& block) const;

  std::vector<Use> uses_;
  std::vector<std::unique_ptr<std::byte[]>> kept_;
};

// Returns which of `recorded` have to run for the last of them, in order: those that write what it uses, and what these
// need in turn.
std::vector<bool> needed_by_last(const std::vector<Uses*>& recorded);

// Call before `next` runs ahead of `waiting`, which were recorded before it: what `next` overwrites and they have yet
// to read is kept for them. When a whole step runs nothing is kept: a write in place takes over the buffer of the old
// value.
void keep_old_values(const Uses& next, const std::vector<Uses*>& waiting);

}  // namespace refnpu::driver
