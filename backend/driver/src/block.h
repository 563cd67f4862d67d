// A block of memory as the driver knows it, and what was asked for when it was made.
#pragma once

#include <cstddef>
#include <string>

#include "refnpu/driver.h"

namespace refnpu::driver {

struct Request {
  size_t size = 0;       // bytes, as asked for
  size_t alignment = 1;  // a power of two; 1 leaves it to the allocator mode
  int device = -1;       // -1: pinned host memory
};

struct Block : Request {
  char* start = nullptr;
  npuStream_t stream = nullptr;  // whose work uses it, unless npuRecordStream names others; null for pinned memory

  const char* end() const { return start + size; }
};

// "0x7f… (64 bytes, npu:0)"
std::string describe(const Block& block);

}  // namespace refnpu::driver
