// Looking up, adding and taking out live blocks, and saying what is wrong with a pointer.
#include "driver/src/table.h"

#include <algorithm>

#include "driver/src/error.h"
#include "refnpu/fault.h"

namespace refnpu::driver {
namespace {

uintptr_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// Bytes between `pointer` and the block; 0 inside it.
uintptr_t distance(const Block& block, const void* pointer) {
  if (pointer < block.start) return address(block.start) - address(pointer);
  if (pointer >= block.end()) return address(pointer) - address(block.end());
  return 0;
}

std::string position(const Block& block, const void* pointer) {
  if (pointer < block.start) return std::to_string(distance(block, pointer)) + " bytes before its start";
  if (pointer >= block.end()) return std::to_string(distance(block, pointer)) + " bytes past its end";
  return std::to_string(address(pointer) - address(block.start)) + " bytes inside it";
}

}  // namespace

std::string describe(const Block& block) {
  std::string place = block.device < 0 ? "pinned host memory" : "npu:" + std::to_string(block.device);
  return hex(block.start) + " (" + std::to_string(block.size) + " bytes, " + place + ")";
}

Table& table() {
  static Table* instance = new Table;  // never destroyed: tensors may be freed after static destructors
  return *instance;
}

void Table::insert(const Block& block) {
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!fault(Fault::table_unlocked)) lock.lock();
  live_[address(block.start)] = block;
}

npuError_t Table::remove(void* pointer, bool pinned, Block* removed) {
  std::lock_guard lock(mutex_);
  auto found = live_.find(address(pointer));
  if (found == live_.end() || (found->second.device < 0) != pinned) return explain_bad_free(pointer, pinned);
  *removed = found->second;
  live_.erase(found);
  freed_.push_back(*removed);
  if (freed_.size() > kRemembered) freed_.pop_front();
  return npuSuccess;
}

npuError_t Table::explain_bad_free(void* pointer, bool pinned) const {
  std::string call = std::string(pinned ? "npuFreeHost(" : "npuFree(") + hex(pointer) + ")";
  if (auto holder = find_locked(pointer)) {
    std::string why = holder->start == pointer ? "the block is of the other kind: " : "not the start of its block: ";
    return fail(npuErrorInvalidValue, call + ": " + why + describe(*holder));
  }
  auto before = std::find_if(freed_.rbegin(), freed_.rend(), [&](const Block& b) { return b.start == pointer; });
  if (before != freed_.rend()) {
    return fail(npuErrorDoubleFree,
                call + ": already freed, was " + describe(*before) + "; " + nearest_locked(pointer));
  }
  return fail(npuErrorUntrackedPointer, call + ": never allocated here; " + nearest_locked(pointer));
}

std::optional<Block> Table::find(const void* pointer) const {
  std::lock_guard lock(mutex_);
  return find_locked(pointer);
}

std::optional<Block> Table::find_locked(const void* pointer) const {
  auto after = live_.upper_bound(address(pointer));
  if (after == live_.begin()) return std::nullopt;
  const Block& block = std::prev(after)->second;
  return pointer < block.end() ? std::optional(block) : std::nullopt;
}

std::string Table::nearest(const void* pointer) const {
  std::lock_guard lock(mutex_);
  return nearest_locked(pointer);
}

std::string Table::explain_access(const void* pointer) const {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return "the table of blocks is in use";
  if (auto holder = find_locked(pointer)) return "inside live block " + describe(*holder);
  auto held = [&](const Block& block) { return pointer >= block.start && pointer < block.end(); };
  auto freed = std::find_if(freed_.rbegin(), freed_.rend(), held);
  if (freed != freed_.rend()) return "inside " + describe(*freed) + ", which is freed";
  return nearest_locked(pointer);
}

std::string Table::nearest_locked(const void* pointer) const {
  if (live_.empty()) return "no live block";
  auto after = live_.upper_bound(address(pointer));
  const Block* best = after == live_.end() ? nullptr : &after->second;
  if (after != live_.begin()) {
    const Block& before = std::prev(after)->second;
    if (!best || distance(before, pointer) <= distance(*best, pointer)) best = &before;
  }
  return "nearest live block " + describe(*best) + ", pointer lies " + position(*best, pointer);
}

}  // namespace refnpu::driver
