// Collects the questions for faults, with the operators that run when they are asked.
//
// An observer of torch's keeps the operators that run in each thread, as the profiler does: a dispatch mode would not
// see what a kernel calls.
#include "bindings/fault_trace.h"

#include <ATen/record_function.h>

#include <memory>
#include <mutex>
#include <set>

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

}  // namespace refnpu
