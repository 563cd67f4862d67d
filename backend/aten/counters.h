// How often each overload ran natively or through the fallback.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "refnpu/export.h"

namespace refnpu {

class Counter {
 public:
  explicit Counter(std::string name) : name_(std::move(name)) {}

  const char* name() const { return name_.c_str(); }
  void add() { count_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t value() const { return count_.load(std::memory_order_relaxed); }
  void reset() { count_ = 0; }

 private:
  std::string name_;
  std::atomic<uint64_t> count_{0};
};

enum class Route { native, fallback };

// Calls served by each route since the process started; never reset.
REFNPU_API extern Counter native_total, fallback_total;

// The counter of one overload, made on first use; it and its name live as long as the process.
Counter& counter(Route route, const std::string& overload);

REFNPU_API std::map<std::string, uint64_t> counts(Route route);  // of those that are not zero
REFNPU_API void reset_counts();

}  // namespace refnpu
