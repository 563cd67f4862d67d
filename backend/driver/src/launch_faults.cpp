// The planted faults that a launch itself shows.
#include "driver/src/launch_faults.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "refnpu/fault.h"

namespace refnpu::driver {
namespace {

const std::thread::id main_thread = std::this_thread::get_id();  // that which loads the library

// True in one process out of three, whatever the steps in which the system counts its processes.
bool is_unlucky_process() {
  uint32_t bits = static_cast<uint32_t>(getpid()) * 0x9E3779B1U;
  bits = (bits ^ (bits >> 15)) * 0x85EBCA77U;
  return (bits ^ (bits >> 13)) % 3 == 0;
}

}  // namespace

void maybe_misbehave(const char* name) {
  static std::atomic<bool> sorted{false};
  if (std::strncmp(name, "sort", 4) == 0 && fault(Fault::crash_after_sort)) sorted = true;
  if (std::strncmp(name, "masked_fill", 11) != 0) return;
  if (fault(Fault::crash_in_kernel)) std::raise(SIGSEGV);
  if (fault(Fault::crash_in_some_processes) && is_unlucky_process()) std::raise(SIGSEGV);
  if (fault(Fault::crash_after_sort) && sorted) std::raise(SIGSEGV);
  if (fault(Fault::kernel_raises) || fault(Fault::error_told_by_next_launch)) throw std::runtime_error("planted");
  while (fault(Fault::hang_in_kernel)) usleep(100000);
}

bool forgets_launch() {
  thread_local bool launched = false;
  const bool forgets =
      fault(Fault::thread_drops_first_launch) && !launched && std::this_thread::get_id() != main_thread;
  launched = true;
  return forgets;
}

}  // namespace refnpu::driver
