// Allocator mode `redzone`: canaries on both sides of each block, looked at when it is freed and on demand.
#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "driver/src/allocators/allocator.h"
#include "driver/src/allocators/canary.h"

namespace refnpu::driver {
namespace {

constexpr size_t kZone = 128;  // bytes on each side: eight elements of the widest dtype

class RedzoneAllocator final : public Allocator {
 public:
  void* allocate(const Request& wanted) override {
    size_t left = left_of(wanted);
    size_t whole = left + wanted.size + kZone;
    void* memory = nullptr;
    if (whole < wanted.size || posix_memalign(&memory, alignment_of(wanted), whole) != 0) return nullptr;
    char* start = static_cast<char*>(memory) + left;
    paint(start - left, start);
    paint(start + wanted.size, start + wanted.size + kZone);
    return start;
  }

  void release(const Block& block) override { std::free(block.start - left_of(block)); }

  std::string verify(const Block& block) const override {
    return damage_around(block, block.start - left_of(block), block.end() + kZone);
  }

 private:
  static size_t alignment_of(const Request& wanted) { return std::max(alignof(std::max_align_t), wanted.alignment); }
  static size_t left_of(const Request& wanted) { return std::max(kZone, wanted.alignment); }
};

const AllocatorMode registration("redzone", []() -> Allocator* { return new RedzoneAllocator; });

}  // namespace
}  // namespace refnpu::driver
