// Allocator mode `aligned_alloc`: 64-byte aligned blocks, rounded up as aligned_alloc demands.
#include <algorithm>
#include <cstdlib>

#include "driver/src/allocators/allocator.h"

namespace refnpu::driver {
namespace {

class AlignedAllocator final : public Allocator {
 public:
  void* allocate(const Request& wanted) override {
    size_t alignment = std::max(kAlignment, wanted.alignment);
    size_t rounded = round_up(wanted.size, alignment);
    return rounded == 0 ? nullptr : std::aligned_alloc(alignment, rounded);
  }
  void release(const Block& block) override { std::free(block.start); }

 private:
  static constexpr size_t kAlignment = 64;
};

const AllocatorMode registration("aligned_alloc", []() -> Allocator* { return new AlignedAllocator; });

}  // namespace
}  // namespace refnpu::driver
