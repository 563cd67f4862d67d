// Allocator mode `malloc`: blocks of exactly the size asked for, with the alignment malloc gives.
#include <cstdlib>

#include "driver/src/allocators/allocator.h"

namespace refnpu::driver {
namespace {

class MallocAllocator final : public Allocator {
 public:
  void* allocate(size_t size) override { return std::malloc(size); }
  void release(void* pointer, size_t) override { std::free(pointer); }
};

const AllocatorMode registration("malloc", []() -> Allocator* { return new MallocAllocator; });

}  // namespace
}  // namespace refnpu::driver
