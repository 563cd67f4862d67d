// Collects the questions for faults, with the operators that run when they are asked.
//
// An observer of torch's keeps the operators that run in each thread, as the profiler does: a dispatch mode would not
// see what a kernel calls.
#include "bindings/fault_trace.h"

#include <ATen/record_function.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>
#include <unordered_map>

#include "refnpu/fault.h"

namespace refnpu {
namespace {

std::mutex guard;
std::set<std::pair<std::string, std::string>> questions;  // under `guard`
at::CallbackHandle observer = at::INVALID_CALLBACK_HANDLE;
thread_local std::vector<std::string> running;  // the innermost last

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& function) {
  running.emplace_back(function.name());
  return nullptr;
}

void leave(const at::RecordFunction&, at::ObserverContext*) { running.pop_back(); }

void note(const char* fault) {
  std::lock_guard lock(guard);
  questions.emplace(fault, running.empty() ? "" : running.back());
}

// For each fault, in their order, whether it was asked for: in memory that forked processes share.
std::atomic<bool>* shared = nullptr;

void note_shared(const char* fault) {
  static const auto index = [] {
    std::unordered_map<const void*, std::size_t> found;
    for (const auto& each : fault_descriptions()) found.emplace(each.name, found.size());
    return found;
  }();
  shared[index.at(fault)].store(true, std::memory_order_relaxed);
}

}  // namespace

void start_fault_trace() {
  stop_fault_trace();
  observer = at::addGlobalCallback(at::RecordFunctionCallback(enter, leave).scopes({at::RecordScope::FUNCTION}));
  trace_faults(note);
}

std::vector<std::pair<std::string, std::string>> stop_fault_trace() {
  set_fault("");
  if (observer != at::INVALID_CALLBACK_HANDLE) at::removeCallback(observer);
  observer = at::INVALID_CALLBACK_HANDLE;
  std::lock_guard lock(guard);
  std::vector<std::pair<std::string, std::string>> found(questions.begin(), questions.end());
  questions.clear();
  return found;
}

void share_fault_trace() {
  if (!shared) {
    const std::size_t size = fault_descriptions().size() * sizeof(std::atomic<bool>);
    void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);  // zeros
    if (pages == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    shared = static_cast<std::atomic<bool>*>(pages);
  }
  take_fault_trace();
  trace_faults(note_shared);
}

std::vector<std::string> take_fault_trace() {
  std::vector<std::string> found;
  const auto& all = fault_descriptions();
  for (std::size_t i = 0; shared && i < all.size(); ++i) {
    if (shared[i].exchange(false)) found.emplace_back(all[i].name);
  }
  return found;
}

}  // namespace refnpu
