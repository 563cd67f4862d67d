// The table of allocations: which blocks live, where, how large. One mutex, safe under threads.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "driver/src/block.h"
#include "refnpu/driver.h"

namespace refnpu::driver {

class Table {
 public:
  void insert(const Block& block);

  // Takes the block that starts at `pointer` out of the table.
  npuError_t remove(void* pointer, bool pinned, Block* removed);

  // The live block that holds `pointer`; a pointer one past the end belongs to no block.
  std::optional<Block> find(const void* pointer) const;

  // "nearest live block: 0x… (64 bytes on npu:0), ends 16 bytes before"
  std::string nearest(const void* pointer) const;

  // What an access of `pointer` that nobody allowed touched: a live block, a freed one, or what lies next to one. Does
  // not wait for the table: a signal handler asks.
  std::string explain_access(const void* pointer) const;

  // Calls `visit(block)` for every live block; none can leave the table meanwhile.
  template <class Visit>
  void each(const Visit& visit) const {
    std::lock_guard lock(mutex_);
    for (const auto& [start, block] : live_) visit(block);
  }

 private:
  npuError_t explain_bad_free(void* pointer, bool pinned) const;
  std::string nearest_locked(const void* pointer) const;
  std::optional<Block> find_locked(const void* pointer) const;

  static constexpr size_t kRemembered = 4096;  // frees remembered, to tell a second free from a stray one
  mutable std::mutex mutex_;
  std::map<uintptr_t, Block> live_;
  std::deque<Block> freed_;
};

Table& table();

}  // namespace refnpu::driver
