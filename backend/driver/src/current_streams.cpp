// The current streams of each thread, and the faults of threads that have those of others.
#include "driver/src/current_streams.h"

#include <pthread.h>

#include <map>
#include <mutex>

#include "refnpu/fault.h"

namespace refnpu::driver {
namespace {

// The fault of what belongs to a thread and is found by the thread's id, which a later thread may get again.
std::vector<npuStream_t>& found_by_id() {
  static auto* mutex = new std::mutex;
  static auto* all = new std::map<pthread_t, std::vector<npuStream_t>>;
  std::lock_guard lock(*mutex);
  return (*all)[pthread_self()];
}

}  // namespace

std::vector<npuStream_t>& current_streams() {
  thread_local std::vector<npuStream_t> of_thread;
  static std::vector<npuStream_t> of_all_threads(64);
  if (fault(Fault::thread_inherits_streams_of_ended)) return found_by_id();
  return fault(Fault::current_stream_of_all_threads) ? of_all_threads : of_thread;
}

}  // namespace refnpu::driver
