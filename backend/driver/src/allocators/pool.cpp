// Allocator mode `pool`: freed blocks are kept for reuse, by size class; split, merged, given back under pressure.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>

#include "driver/src/allocators/allocator.h"
#include "driver/src/device.h"
#include "refnpu/fault.h"

namespace refnpu::driver {
namespace {

constexpr size_t kGranule = 256;  // bytes: sizes are rounded up to it, blocks are aligned to it

// Requests up to `largest` bytes are cut from segments of `segment` bytes; 0: each gets one of its own.
struct SizeClass {
  size_t largest, segment;
};
constexpr std::array kClasses{SizeClass{64 << 10, 1 << 20}, SizeClass{4 << 20, 32 << 20}, SizeClass{SIZE_MAX, 0}};

size_t class_of(size_t size) {
  auto fits = [&](const SizeClass& each) { return size <= each.largest; };
  return std::find_if(kClasses.begin(), kClasses.end(), fits) - kClasses.begin();
}

// A part of a segment, free or in use, between its neighbours; null at the segment's ends.
struct Chunk {
  char* start;
  size_t size;
  int device;
  size_t size_class;
  bool free = true;
  Chunk* before = nullptr;
  Chunk* after = nullptr;

  bool is_segment() const { return !before && !after; }
};

struct BySize {
  bool operator()(const Chunk* a, const Chunk* b) const {
    return std::tie(a->size, a->start) < std::tie(b->size, b->start);
  }
};

struct Kept {
  size_t reserved = 0, peak = 0, reused = 0, splits = 0, merges = 0, returned = 0;
  size_t segments = 0, peak_segments = 0, returned_segments = 0;
  std::array<std::set<Chunk*, BySize>, kClasses.size()> free;
};

class PoolAllocator final : public Allocator {
 public:
  void* allocate(const Request& wanted) override {
    size_t size = round_up(wanted.size, kGranule);
    const bool medium = wanted.size >= 1 << 10 && wanted.size <= 64 << 10;
    if (medium && fault(Fault::pool_rounds_down)) size = wanted.size / kGranule * kGranule;
    size_t room = size + std::max(wanted.alignment, kGranule) - kGranule;
    if (size == 0 || room < size) return nullptr;
    std::lock_guard lock(mutex_);
    Chunk* chunk = best_fit(wanted.device, room);
    if (!chunk) chunk = new_segment(wanted.device, room);
    return chunk ? carve(chunk, size, wanted.alignment) : nullptr;
  }

  void release(const Block& block) override {
    std::lock_guard lock(mutex_);
    auto found = used_.find(block.start);
    if (found == used_.end()) return;  // only fault pool_hands_out_twice comes here
    Chunk* chunk = found->second;
    used_.erase(found);
    const bool in_between = chunk->after && chunk->after->free && chunk->before && chunk->before->free;
    const bool one_side = in_between && fault(Fault::pool_middle_block_merges_one_side);
    if (chunk->after && chunk->after->free) join(chunk, take(chunk->after));
    if (chunk->before && chunk->before->free && !one_side) {
      Chunk* before = take(chunk->before);
      join(before, chunk);
      chunk = before;
    }
    put(chunk);
  }

  void trim() override {
    std::lock_guard lock(mutex_);
    for (auto& [device, kept] : kept_) {
      if (device != current_device() && fault(Fault::empty_cache_of_current_device_alone)) continue;
      give_back(kept, SIZE_MAX);
    }
  }

  void add_to(npuMemoryStats* stats, int device) override {
    std::lock_guard lock(mutex_);
    const Kept& kept = kept_[device];
    stats->reserved_bytes = kept.reserved;
    stats->peak_reserved_bytes = kept.peak;
    stats->segments = kept.segments;
    stats->peak_segments = kept.peak_segments;
    stats->returned_segments = kept.returned_segments;
    stats->reused_blocks = kept.reused;
    stats->splits = kept.splits;
    stats->merges = kept.merges;
    stats->returned_bytes = kept.returned;
  }

  void reset_peak(int device) override {
    std::lock_guard lock(mutex_);
    kept_[device].peak = kept_[device].reserved;
    kept_[device].peak_segments = kept_[device].segments;
  }

 private:
  void put(Chunk* chunk) {
    chunk->free = true;
    kept_[chunk->device].free[chunk->size_class].insert(chunk);
  }

  Chunk* take(Chunk* chunk) {
    kept_[chunk->device].free[chunk->size_class].erase(chunk);
    chunk->free = false;
    return chunk;
  }

  Chunk* best_fit(int device, size_t room) {
    auto& free = kept_[device].free[class_of(room)];
    Chunk least{nullptr, room, device, 0};
    auto found = free.lower_bound(&least);
    if (found == free.end()) return fault(Fault::pool_takes_from_other_device) ? fit_of_other(device, room) : nullptr;
    ++kept_[device].reused;
    if (fault(Fault::pool_hands_out_twice) && (*found)->size == room) return *found;
    return take(*found);
  }

  // The fault of free blocks that are found whatever device they are of.
  Chunk* fit_of_other(int device, size_t room) {
    for (auto& [index, kept] : kept_) {
      if (index < 0 || device < 0 || index == device) continue;
      auto& free = kept.free[class_of(room)];
      Chunk least{nullptr, room, index, 0};
      auto found = free.lower_bound(&least);
      if (found != free.end()) return take(*found);
    }
    return nullptr;
  }

  Chunk* new_segment(int device, size_t room) {
    Kept& kept = kept_[device];
    const size_t size_class = class_of(room), usual = std::max(room, kClasses[size_class].segment);
    // A request that is within the capacity is served; it is what is kept for later that has to give way.
    const size_t limit = device < 0 ? SIZE_MAX : capacity(device);
    auto fits = [&](size_t size) { return size <= limit && kept.reserved <= limit - size; };
    if (!fits(usual) && !fits(room) && fault(Fault::pool_keeps_cached_when_full)) return nullptr;
    if (!fits(usual)) give_back(kept, kept.reserved - std::min(kept.reserved, limit - std::min(limit, usual)));
    size_t size = fits(usual) ? usual : room;
    void* memory = std::aligned_alloc(kGranule, size);
    if (!memory) {
      for (auto& [index, each] : kept_) give_back(each, SIZE_MAX);
      memory = std::aligned_alloc(kGranule, size = room);
    }
    if (!memory) return nullptr;
    kept.reserved += size;
    kept.peak =
        std::max(kept.peak, fault(Fault::pool_peak_counts_requests) ? kept.reserved - size + room : kept.reserved);
    kept.peak_segments = std::max(kept.peak_segments, ++kept.segments);
    return new Chunk{static_cast<char*>(memory), size, device, size_class, false};
  }

  // Frees whole segments that nothing lives in, the largest first, until `wanted` bytes have gone back.
  void give_back(Kept& kept, size_t wanted) {
    size_t given = 0;
    for (auto free = kept.free.rbegin(); free != kept.free.rend(); ++free) {
      const bool emptied = wanted == SIZE_MAX, largest = free == kept.free.rbegin();
      if (emptied && largest && fault(Fault::empty_cache_keeps_large)) continue;
      for (auto each = free->end(); each != free->begin() && given < wanted;) {
        Chunk* chunk = *--each;
        if (!chunk->is_segment()) continue;
        each = free->erase(each);
        given += chunk->size;
        --kept.segments;
        ++kept.returned_segments;
        std::free(chunk->start);
        delete chunk;
      }
    }
    if (!fault(Fault::reserved_not_lowered)) kept.reserved -= given;
    kept.returned += given;
  }

  char* carve(Chunk* chunk, size_t size, size_t alignment) {
    auto address = reinterpret_cast<uintptr_t>(chunk->start);
    size_t skipped = ((address + alignment - 1) & ~(alignment - 1)) - address;
    if (skipped > 0) {
      Chunk* front = chunk;
      chunk = split(front, skipped);
      put(front);
    }
    if (chunk->size > size) put(split(chunk, size));
    used_[chunk->start] = chunk;
    return chunk->start;
  }

  // Cuts `chunk` after `size` bytes; returns the rest.
  Chunk* split(Chunk* chunk, size_t size) {
    ++kept_[chunk->device].splits;
    auto* rest = new Chunk{chunk->start + size, chunk->size - size, chunk->device, chunk->size_class, false, chunk,
                           chunk->after};
    if (rest->after) rest->after->before = rest;
    chunk->after = rest;
    chunk->size = size;
    return rest;
  }

  // Makes `after`, the next one of the segment, a part of `chunk`.
  void join(Chunk* chunk, Chunk* after) {
    ++kept_[chunk->device].merges;
    chunk->size += after->size;
    chunk->after = after->after;
    if (chunk->after) chunk->after->before = chunk;
    delete after;
  }

  std::mutex mutex_;
  std::map<int, Kept> kept_;  // by device
  std::unordered_map<char*, Chunk*> used_;
};

const AllocatorMode registration("pool", []() -> Allocator* { return new PoolAllocator; });

}  // namespace
}  // namespace refnpu::driver
