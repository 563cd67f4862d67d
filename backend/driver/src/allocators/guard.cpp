// Allocator modes `guard` and `guard_left`: each block on pages of its own between pages that nobody may touch.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <mutex>

#include "driver/src/allocators/allocator.h"
#include "driver/src/allocators/canary.h"

namespace refnpu::driver {
namespace {

// Freed blocks that stay inaccessible, so that a use after free stops at once. They hold addresses, no memory.
constexpr size_t kQuarantined = 4096;

enum class Against { right, left };  // the inaccessible page that the block touches

size_t page() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

char* down(char* address, size_t unit) {
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(address) & ~static_cast<uintptr_t>(unit - 1));
}

struct Mapping {
  char* start = nullptr;
  size_t size = 0;
};

char* first_page(const Block& block) { return down(block.start, page()); }
char* past_last_page(const Block& block) { return down(block.start + block.size + page() - 1, page()); }

// The block's own pages and one inaccessible page on each side.
Mapping mapping_of(const Block& block) {
  char* start = first_page(block) - page();
  return {start, static_cast<size_t>(past_last_page(block) + page() - start)};
}

class GuardAllocator final : public Allocator {
 public:
  explicit GuardAllocator(Against side) : side_(side) {}

  void* allocate(const Request& wanted) override {
    size_t room = round_up(wanted.size, page());
    if (room == 0) return nullptr;
    char* first = map(room, std::max(page(), wanted.alignment));
    if (!first) {
      empty_quarantine(0);  // what is short may be mappings, of which a process has only so many
      first = map(room, std::max(page(), wanted.alignment));
    }
    if (!first) return nullptr;
    // Right-aligned to the byte: rounded to 16 or 64, the first bytes past the end would be anybody's.
    char* start = side_ == Against::right ? down(first + room - wanted.size, wanted.alignment) : first;
    paint(first, start);
    paint(start + wanted.size, first + room);
    return start;
  }

  void release(const Block& block) override {
    Mapping mapping = mapping_of(block);
    // Mapped anew rather than mprotected, which gives the memory back too.
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap(mapping.start, mapping.size, PROT_NONE, kFlags, -1, 0) == MAP_FAILED) return unmap(mapping);
    {
      std::lock_guard lock(mutex_);
      quarantine_.push_back(mapping);
    }
    empty_quarantine(kQuarantined);
  }

  std::string verify(const Block& block) const override {
    return damage_around(block, first_page(block), past_last_page(block));
  }

  bool owns_pages() const override { return true; }

 private:
  // The first of `room` bytes of pages at a multiple of `alignment`, between two inaccessible pages; null for none.
  static char* map(size_t room, size_t alignment) {
    size_t kept = room + 2 * page(), whole = kept + alignment - page();
    if (kept < room || whole < kept) return nullptr;
    void* memory = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    char* start = static_cast<char*>(memory);
    char* first = down(start + page() + alignment - 1, alignment);
    unmap({start, static_cast<size_t>(first - page() - start)});
    unmap({first + room + page(), static_cast<size_t>(start + whole - (first + room + page()))});
    if (mprotect(first, room, PROT_READ | PROT_WRITE) == 0) return first;
    unmap({first - page(), kept});
    return nullptr;
  }

  static void unmap(const Mapping& mapping) {
    if (mapping.size > 0) munmap(mapping.start, mapping.size);
  }

  void empty_quarantine(size_t kept) {
    std::lock_guard lock(mutex_);
    for (; quarantine_.size() > kept; quarantine_.pop_front()) unmap(quarantine_.front());
  }

  const Against side_;
  std::mutex mutex_;
  std::deque<Mapping> quarantine_;
};

const AllocatorMode right("guard", []() -> Allocator* { return new GuardAllocator(Against::right); });
const AllocatorMode left("guard_left", []() -> Allocator* { return new GuardAllocator(Against::left); });

}  // namespace
}  // namespace refnpu::driver
