// What an allocator mode is: where the bytes of a block come from, and what it can say about damage.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace refnpu::driver {

// One mode, one file in this directory. Bookkeeping (who owns what, capacity, statistics) is not its business.
class Allocator {
 public:
  virtual ~Allocator() = default;

  // `size` > 0 bytes, or null when there are none left.
  virtual void* allocate(size_t size) = 0;
  virtual void release(void* pointer, size_t size) = 0;

  // What is damaged around or in this live block, in words; empty when nothing is, or when the mode cannot tell.
  virtual std::string verify(const void* pointer, size_t size) const {
    (void)pointer, (void)size;
    return {};
  }
};

using MakeAllocator = Allocator* (*)();

// Each mode's file holds one of these at namespace scope.
struct AllocatorMode {
  AllocatorMode(const char* name, MakeAllocator make);
};

// The allocator that REFNPU_ALLOCATOR names (default `malloc`); null when it names none: see allocator_error.
Allocator* allocator();
const std::string& allocator_name();
const std::string& allocator_error();

}  // namespace refnpu::driver
