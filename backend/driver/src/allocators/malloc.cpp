// Allocator mode `malloc`: blocks of exactly the size asked for, with the alignment malloc gives or the one asked for.
#include <cstddef>
#include <cstdlib>

#include "driver/src/allocators/allocator.h"

namespace refnpu::driver {
namespace {

class MallocAllocator final : public Allocator {
 public:
  void* allocate(const Request& wanted) override {
    if (wanted.alignment <= alignof(std::max_align_t)) return std::malloc(wanted.size);
    void* start = nullptr;  // posix_memalign takes any size, aligned_alloc multiples only
    return posix_memalign(&start, wanted.alignment, wanted.size) == 0 ? start : nullptr;
  }
  void release(const Block& block) override { std::free(block.start); }
};

const AllocatorMode registration("malloc", []() -> Allocator* { return new MallocAllocator; });

}  // namespace
}  // namespace refnpu::driver
