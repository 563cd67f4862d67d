// Which fault is awake: read from REFNPU_FAULT when the library is loaded, changed by set_fault.
#include "refnpu/fault.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "driver/src/mix.h"
#include "driver/src/near_names.h"

namespace refnpu {

#if REFNPU_FAULTS
namespace detail {
std::atomic<Fault> active_fault{Fault::none};
std::atomic<void (*)(const char*)> note_question{nullptr};

bool is_awake(Fault which) {
  const Fault awake = active_fault.load(std::memory_order_relaxed);
  if (awake == Fault::traced) note_question.load()(fault_descriptions()[static_cast<int>(which) - 1].name);
  return awake == which;
}

// The number of random faults so far, in memory that forked processes share. Mapped when the library is loaded.
std::atomic<std::uint64_t>* const asked = [] {
  void* page =
      mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? nullptr : new (page) std::atomic<std::uint64_t>(0);
}();

bool strikes(unsigned often) { return asked && driver::mixed(asked->fetch_add(1)) % often == 0; }
}  // namespace detail

const std::vector<FaultDescription>& fault_descriptions() {
  static const std::vector<FaultDescription> all = {
#define FAULT(name, kind, description) {#name, description},
#include "refnpu/faults.def"
#undef FAULT
  };
  return all;
}

std::string set_fault(std::string_view name) {
  if (name.empty()) {
    detail::active_fault = Fault::none;
    return {};
  }
  std::vector<std::string> known;
  for (const auto& each : fault_descriptions()) {
    known.emplace_back(each.name);
    if (name == each.name) {
      detail::active_fault = static_cast<Fault>(known.size());
      return {};
    }
  }
  return unknown_name("fault", name, known);
}

bool fault_called(std::string_view name) {
  if (!any_fault()) return false;  // the search of the name takes microseconds
  const auto& all = fault_descriptions();
  for (size_t i = 0; i < all.size(); ++i) {
    if (name == all[i].name) return fault(static_cast<Fault>(i + 1));  // 0 is none
  }
  return false;
}

std::string active_fault_name() {
  int index = static_cast<int>(detail::active_fault.load());
  return index <= 0 ? "" : fault_descriptions()[index - 1].name;
}

void trace_faults(void (*note)(const char*)) {
  detail::note_question = note;
  detail::active_fault = Fault::traced;
}

#else

const std::vector<FaultDescription>& fault_descriptions() {
  static const std::vector<FaultDescription> none;
  return none;
}

std::string set_fault(std::string_view name) {
  if (name.empty()) return {};
  return "fault '" + std::string(name) + "': this build has no faults; build with REFNPU_FAULTS=ON to wake one";
}

bool fault_called(std::string_view) { return false; }

std::string active_fault_name() { return {}; }

void trace_faults(void (*)(const char*)) {}

#endif

const std::string& fault_environment_error() {
  static const std::string error = [] {
    const char* name = std::getenv("REFNPU_FAULT");
    std::string wrong = set_fault(name ? name : "");
    return wrong.empty() ? wrong : "REFNPU_FAULT: " + wrong;
  }();
  return error;
}

namespace {
// Reading it here makes the variable work for programs that link the driver and never ask.
[[maybe_unused]] const bool read_at_load = fault_environment_error().empty();
}  // namespace

}  // namespace refnpu
