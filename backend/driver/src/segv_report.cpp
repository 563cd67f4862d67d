// A handler of SIGSEGV that names the kernel, the address and the block, and hands on to the handler before it.
#include "driver/src/segv_report.h"

#include <signal.h>
#include <unistd.h>

#include <mutex>
#include <string>

#include "driver/src/error.h"
#include "driver/src/table.h"

namespace refnpu::driver {
namespace {

struct sigaction before;
thread_local const char* running_kernel = nullptr;

// Strings are built in a signal handler: the signal comes from an access of device memory, not out of malloc.
void report(int, siginfo_t* info, void*) {
  sigaction(SIGSEGV, &before, nullptr);  // returning repeats the access, and so raises it again
  std::string where = running_kernel ? std::string("kernel '") + running_kernel + "'" : "the host, outside kernels";
  std::string line =
      "refnpu: SIGSEGV at " + hex(info->si_addr) + " in " + where + ": " + table().explain_access(info->si_addr) + "\n";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void report_segv() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action{};
    action.sa_sigaction = &report;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before);
  });
}

const char* set_running_kernel(const char* name) {
  const char* previous = running_kernel;
  running_kernel = name;
  return previous;
}

}  // namespace refnpu::driver
