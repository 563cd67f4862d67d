// Appending to a queue, waiting for it, and the loop of its thread.
#include "driver/src/queue.h"

#include <pthread.h>

#include <csignal>
#include <thread>

#include "driver/src/schedule.h"
#include "refnpu/fault.h"

namespace refnpu::driver {
namespace {

// So that staged copies and launch arguments cannot fill the memory of the host.
constexpr size_t kMostQueued = 1024;

thread_local bool runs_queue = false;

// Signals from outside go to the program's own threads. Those that work itself can raise stay open: a thread that
// blocks them dies without its handler.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&blocked, signal);
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

bool on_worker() { return runs_queue; }

void Queue::start_thread() {
  SignalsBlocked inherited;
  std::thread([self = shared_from_this()] { self->run_all(); }).detach();
  has_thread_ = true;
}

uint64_t Queue::push(std::unique_ptr<Work> work, Starts starts) {
  std::unique_lock lock(mutex_);
  if (!on_worker()) finished_.wait(lock, [&] { return items_.size() < kMostQueued || stopped_; });
  if (stopped_) return 0;
  if (!has_thread_) start_thread();
  items_.push_back({std::move(work), starts});
  const uint64_t number = submitted_.fetch_add(1, std::memory_order_release) + 1;
  arrived_.notify_one();
  return number;
}

void Queue::wait(uint64_t number) {
  if (passed(number)) return;
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return passed(number); });
}

bool Queue::wait_at_most(uint64_t number, std::chrono::seconds longest) {
  std::unique_lock lock(mutex_);
  return finished_.wait_for(lock, longest, [&] { return passed(number); });
}

// What fault work_overtakes does. Two kernels alone change places: a wait that came too early could be one for ever.
void Queue::overtake() {
  const auto is_kernel = [](const Item& item) { return item.starts == Starts::delayed; };
  const bool two = items_.size() > 1 && is_kernel(items_[0]) && is_kernel(items_[1]);
  overtook_ = two && !overtook_;  // one that was overtaken is next
  if (overtook_) std::swap(items_[0], items_[1]);
}

void Queue::run_all() {
  runs_queue = true;
  std::unique_lock lock(mutex_);
  while (true) {
    arrived_.wait(lock, [&] { return stopped_ || !items_.empty(); });
    if (stopped_) break;
    if (fault(Fault::work_overtakes)) overtake();
    Item item = std::move(items_.front());
    items_.pop_front();
    if (item.starts == Starts::delayed) {
      const auto delay = delay_of(number_, done_.load(std::memory_order_relaxed) + 1);
      if (delay.count() > 0 && arrived_.wait_for(lock, delay, [&] { return stopped_.load(); })) break;
    }
    lock.unlock();
    item.work->run();
    item.work.reset();
    lock.lock();
    done_.fetch_add(1, std::memory_order_release);
    finished_.notify_all();
  }
  has_thread_ = false;
  finished_.notify_all();
}

void Queue::stop() {
  std::deque<Item> dropped;
  std::lock_guard lock(mutex_);
  stopped_ = true;
  dropped.swap(items_);
  arrived_.notify_all();
  finished_.notify_all();
}

bool Queue::wait_for_end(std::chrono::seconds longest) {
  std::unique_lock lock(mutex_);
  return finished_.wait_for(lock, longest, [&] { return !has_thread_; });
}

}  // namespace refnpu::driver
