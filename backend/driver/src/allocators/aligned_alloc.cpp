// Allocator mode `aligned_alloc`: 64-byte aligned blocks, rounded up as aligned_alloc demands.
#include <cstdlib>

#include "driver/src/allocators/allocator.h"

namespace refnpu::driver {
namespace {

class AlignedAllocator final : public Allocator {
 public:
  void* allocate(size_t size) override {
    size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
    return rounded < size ? nullptr : std::aligned_alloc(kAlignment, rounded);  // less than size: it overflowed
  }
  void release(void* pointer, size_t) override { std::free(pointer); }

 private:
  static constexpr size_t kAlignment = 64;
};

const AllocatorMode registration("aligned_alloc", []() -> Allocator* { return new AlignedAllocator; });

}  // namespace
}  // namespace refnpu::driver
