// Finding the blocks that work uses, the work that other work needs, and the old values that waiting work reads.
#include "driver/src/uses.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "driver/src/protect.h"
#include "driver/src/table.h"
#include "refnpu/fault.h"

namespace refnpu::driver {
namespace {

// What fault partial_run_misses_views sees of a use: one that begins at the start of its block.
bool is_view(const Use& use) {
  const auto inside = [&](char** place) { return *place != use.block.start; };
  return !use.places.empty() && std::all_of(use.places.begin(), use.places.end(), inside);
}

void merge(std::vector<Block>* blocks, const Uses& uses) {
  for (const Use& use : uses.all()) blocks->push_back(use.block);
}

bool writes_any(const Uses& uses, const std::vector<Block>& blocks) {
  return std::any_of(blocks.begin(), blocks.end(), [&](const Block& block) { return uses.writes(block); });
}

}  // namespace

const Use* Uses::find(const Block& block) const {
  const auto same = [&](const Use& use) { return use.block.start == block.start; };
  const auto found = std::find_if(uses_.begin(), uses_.end(), same);
  return found == uses_.end() ? nullptr : &*found;
}

void Uses::add(Block block, bool written) {
  if (!touches(block)) uses_.push_back({std::move(block), written});
}

void Uses::add_pointers(std::byte* arguments, size_t size, std::span<const void* const> reads) {
  for (size_t at = 0; at + sizeof(char*) <= size; at += alignof(char*)) {
    auto** place = reinterpret_cast<char**>(arguments + at);
    const auto block = *place ? table().find(*place) : std::nullopt;
    if (!block) continue;
    const auto inside = [&](const void* read) { return read >= block->start && read < block->end(); };
    const bool read = std::any_of(reads.begin(), reads.end(), inside);
    add(*block, !read);
    for (Use& use : uses_) {
      if (use.block.start == block->start) use.places.push_back(place);
    }
  }
}

bool Uses::writes(const Block& block) const {
  const Use* use = find(block);
  return use && use->written && !(is_view(*use) && fault(Fault::partial_run_misses_views));
}

void Uses::keep(const Block& block) {
  constexpr size_t kAlignment = 64;
  const auto found = std::find_if(uses_.begin(), uses_.end(),
                                  [&](const Use& use) { return use.block.start == block.start && !use.written; });
  if (found == uses_.end() || found->places.empty()) return;
  // At the same distance from a multiple of kAlignment as the block.
  auto bytes = std::make_unique_for_overwrite<std::byte[]>(block.size + 2 * kAlignment);
  char* copy = reinterpret_cast<char*>(bytes.get());
  const auto behind = [](const char* pointer) { return reinterpret_cast<uintptr_t>(pointer) % kAlignment; };
  copy += kAlignment - behind(copy) + behind(block.start);
  {
    Window window({block});
    std::memcpy(copy, block.start,
                fault(Fault::partial_run_keeps_first_bytes) ? std::min<size_t>(block.size, 64) : block.size);
  }
  for (char** place : found->places) {
    *place = copy + (*place - block.start);
    if (fault(Fault::partial_run_keeps_first_argument)) break;
  }
  kept_.push_back(std::move(bytes));
  uses_.erase(found);
}

std::vector<bool> needed_by_last(const std::vector<Uses*>& recorded) {
  std::vector<bool> needed(recorded.size(), false);
  if (recorded.empty()) return needed;
  std::vector<Block> blocks;
  merge(&blocks, *recorded.back());
  needed.back() = true;
  for (size_t k = recorded.size() - 1; k-- > 0;) {
    if (!recorded[k] || !writes_any(*recorded[k], blocks)) continue;
    needed[k] = true;
    if (!fault(Fault::partial_run_forgets_inputs)) merge(&blocks, *recorded[k]);
  }
  return needed;
}

void keep_old_values(const Uses& next, const std::vector<Uses*>& waiting) {
  if (fault(Fault::partial_run_donates)) return;
  for (const Use& use : next.all()) {
    if (!use.written) continue;
    for (Uses* each : waiting) each->keep(use.block);
  }
}

}  // namespace refnpu::driver
