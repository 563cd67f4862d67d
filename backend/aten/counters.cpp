// The table of counters, by route and overload.
#include "aten/counters.h"

#include <mutex>

namespace refnpu {

Counter native_total("native"), fallback_total("fallback");

namespace {

struct CounterTable {
  std::mutex mutex;
  std::map<std::string, Counter> by_overload[2];  // a map: a counter never moves
};

CounterTable& counter_table() {
  static auto* instance = new CounterTable;
  return *instance;
}

}  // namespace

Counter& counter(Route route, const std::string& overload) {
  std::lock_guard lock(counter_table().mutex);
  return counter_table().by_overload[static_cast<int>(route)].try_emplace(overload, overload).first->second;
}

std::map<std::string, uint64_t> counts(Route route) {
  std::lock_guard lock(counter_table().mutex);
  std::map<std::string, uint64_t> result;
  for (const auto& [overload, each] : counter_table().by_overload[static_cast<int>(route)]) {
    if (each.value() > 0) result[overload] = each.value();
  }
  return result;
}

void reset_counts() {
  std::lock_guard lock(counter_table().mutex);
  for (auto& table : counter_table().by_overload) {
    for (auto& [overload, each] : table) each.reset();
  }
}

}  // namespace refnpu
