// One piece of work on its way to a stream, with everything that it needs to run after its caller has returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "driver/src/uses.h"
#include "refnpu/driver.h"

namespace refnpu::driver {

// Which device memory is opened while the work runs, where memory is protected.
enum class Opens {
  everything,  // a kernel: nobody knows its pointers
  by_itself,   // the driver's own copies and sets, which know their blocks
};

class Submission {
 public:
  // Copies the `size` bytes at `arguments`; `kernel` gets the copy. `name` must outlive the process.
  Submission(const char* name, npuKernel_t kernel, const void* arguments, size_t size, Opens opens)
      : name_(name),
        kernel_(kernel),
        size_(size),
        arguments_(std::make_unique_for_overwrite<std::byte[]>(size)),
        opens_(opens),
        correlation_(current_correlation()),
        call_(current_call()) {
    if (size > 0) std::memcpy(arguments_.get(), arguments, size);
  }

  const char* name() const { return name_; }
  uint64_t correlation() const { return correlation_; }
  const char* call() const { return call_; }  // the submitting call, npuExchangeCall's; "" when there is none
  void run() const;

  // Notes which blocks the work uses: for a kernel, by the pointers among its arguments.
  void find_uses();
  void set_uses(Uses uses) { uses_ = std::move(uses); }
  Uses* uses() { return uses_.empty() ? nullptr : &uses_; }  // null: nobody knows

  // Host memory that the work reads, for as long as it needs it.
  void keep(std::unique_ptr<std::byte[]> bytes) { kept_ = std::move(bytes); }

  // What fault launch_arguments_overwritten does: the kernel gets its arguments from a place that others write, too.
  void share_arguments(std::vector<std::byte>& place);

 private:
  static uint64_t current_correlation();  // npuPushCorrelation's, of the submitting thread; 0 when there is none
  static const char* current_call();
  static std::span<const void* const> current_reads();  // npuExchangeReads'

  const char* name_;
  npuKernel_t kernel_;
  size_t size_;
  std::unique_ptr<std::byte[]> arguments_;  // aligned as operator new aligns
  Opens opens_;
  uint64_t correlation_;
  const char* call_;
  std::unique_ptr<std::byte[]> kept_;
  Uses uses_;
  const std::byte* shared_ = nullptr;
};

// The driver's own work: a callable that captures plain data by value.
template <class Work>
Submission submission_of(const char* name, const Work& work) {
  static_assert(std::is_trivially_copyable_v<Work>, "submitted work captures plain data by value");
  return {name, [](const void* self) { (*static_cast<const Work*>(self))(); }, &work, sizeof work, Opens::by_itself};
}

}  // namespace refnpu::driver
