// The kept errors, by device.
#include "driver/src/late_errors.h"

#include <atomic>
#include <map>
#include <mutex>

#include "driver/src/error.h"
#include "refnpu/fault.h"

namespace refnpu::driver {
namespace {

struct Kept {
  npuError_t code;
  std::string message;
  size_t further = 0;

  std::string text() const {
    if (further == 0) return message;
    return message + " (and " + std::to_string(further) + " more since)";
  }
};

struct LateErrors {
  std::atomic<bool> any{false};
  std::mutex mutex;
  std::map<int, Kept> by_device;
};

LateErrors& errors() {
  static auto* instance = new LateErrors;
  return *instance;
}

}  // namespace

void keep_late_error(int device, npuError_t code, const std::string& message) {
  if (fault(Fault::late_error_lost)) return;
  std::lock_guard lock(errors().mutex);
  auto [kept, first] = errors().by_device.try_emplace(device, Kept{code, message});
  if (!first) ++kept->second.further;
  errors().any = true;
}

npuError_t tell_late_error(int device) {
  return fault(Fault::error_told_by_next_launch) ? npuSuccess : take_late_error(device);
}

npuError_t take_late_error(int device) {
  if (!errors().any.load(std::memory_order_acquire)) return npuSuccess;
  std::lock_guard lock(errors().mutex);
  auto kept = errors().by_device.extract(device);
  if (!kept.empty() && fault(Fault::late_error_repeated)) errors().by_device.emplace(device, kept.mapped());
  errors().any = !errors().by_device.empty();
  return kept.empty() ? npuSuccess : fail(kept.mapped().code, kept.mapped().text());
}

std::string untold_errors() {
  std::lock_guard lock(errors().mutex);
  std::string text;
  for (const auto& [device, kept] : errors().by_device) {
    text += std::string(npuGetErrorName(kept.code)) + ": " + kept.text() + "\n";
  }
  return text;
}

}  // namespace refnpu::driver
