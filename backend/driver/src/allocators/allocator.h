// What an allocator mode is: where the bytes of a block come from, and what it can say about damage.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "driver/src/block.h"
#include "refnpu/driver.h"

namespace refnpu::driver {

// One mode, one file in this directory. Bookkeeping (who owns what, capacity, statistics) is not its business.
class Allocator {
 public:
  virtual ~Allocator() = default;

  // `size` > 0 bytes at the alignment asked for, or null when there are none left.
  virtual void* allocate(const Request& wanted) = 0;
  virtual void release(const Block& block) = 0;

  // What is damaged around this live block, in words; empty when nothing is, or when the mode cannot tell. What it has
  // told it mends, so that each damage is told once, of the work that did it.
  virtual std::string verify(const Block& block) const {
    (void)block;
    return {};
  }

  // Whether blocks never share a page of memory with anything else.
  virtual bool owns_pages() const { return false; }

  // Gives back to the host what it keeps for later.
  virtual void trim() {}

  // Adds what it keeps for a device to the figures of the live blocks.
  virtual void add_to(npuMemoryStats* stats, int device) {
    (void)device;
    stats->reserved_bytes = stats->live_bytes;
    stats->peak_reserved_bytes = stats->peak_bytes;
    stats->segments = stats->live_blocks;
    stats->peak_segments = stats->peak_blocks;
    stats->returned_bytes = stats->freed_bytes;
    stats->returned_segments = stats->frees;
  }
  virtual void reset_peak(int device) { (void)device; }
};

using MakeAllocator = Allocator* (*)();

// Each mode's file holds one of these for each name, at namespace scope.
struct AllocatorMode {
  AllocatorMode(const char* name, MakeAllocator make);
};

// The allocator that REFNPU_ALLOCATOR names (default `malloc`); null when it names none: see allocator_error.
Allocator* allocator();
const std::string& allocator_name();
const std::string& allocator_error();

// `size` rounded up to a multiple of `unit`, a power of two; 0 when that is more than there are addresses.
constexpr size_t round_up(size_t size, size_t unit) {
  size_t rounded = (size + unit - 1) & ~(unit - 1);
  return rounded < size ? 0 : rounded;
}

}  // namespace refnpu::driver
