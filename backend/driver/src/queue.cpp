// Appending to a queue, waiting for it, and the loop of its thread.
#include "driver/src/queue.h"

#include <pthread.h>

#include <algorithm>
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
  if (!on_worker() && starts == Starts::delayed && fault(Fault::full_queue_drops_work)) {
    std::lock_guard lock(mutex_);
    if (items_.size() >= kMostQueued) return submitted_;
  }
  if (!on_worker()) wait_for_room();
  std::lock_guard lock(mutex_);
  if (stopped_) return 0;
  if (!has_thread_) start_thread();
  const uint64_t number = submitted_ + 1;
  const auto delay = starts == Starts::delayed ? delay_of(number_, number) : std::chrono::microseconds(0);
  items_.push_back({std::move(work), starts, number, delay});
  submitted_.store(number, std::memory_order_release);
  if (!is_lazy()) requested_ = number;
  arrived_.notify_one();
  return number;
}

void Queue::wait_for_room() {
  std::unique_lock lock(mutex_);
  if (items_.size() < kMostQueued) return;
  requested_ = submitted_;  // a step that is too long is cut
  arrived_.notify_one();
  finished_.wait(lock, [&] { return items_.size() < kMostQueued || stopped_; });
}

void Queue::request(uint64_t number) {
  if (passed(number)) return;
  std::lock_guard lock(mutex_);
  requested_ = std::max(requested_, number);
  arrived_.notify_one();
}

void Queue::wait(uint64_t number) {
  if (passed(number)) return;
  request(number);
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return passed(number); });
}

bool Queue::wait_at_most(uint64_t number, std::chrono::seconds longest) {
  request(number);
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

// After work of the queue has run, under the lock.
void Queue::finish() {
  running_ = false;
  if (stopped_) items_.clear();
  done_.store(items_.empty() ? submitted_.load() : items_.front().number - 1, std::memory_order_release);
  arrived_.notify_one();
  finished_.notify_all();
}

void Queue::run_all() {
  runs_queue = true;
  std::unique_lock lock(mutex_);
  while (true) {
    arrived_.wait(lock, [&] { return stopped_ || (!running_ && has_requested()); });
    if (stopped_) break;
    if (fault(Fault::work_overtakes)) overtake();
    Item item = std::move(items_.front());
    items_.pop_front();
    running_ = true;
    if (item.delay.count() > 0 && arrived_.wait_for(lock, item.delay, [&] { return stopped_.load(); })) break;
    lock.unlock();
    item.work->run();
    item.work.reset();
    lock.lock();
    finish();
  }
  running_ = false;
  has_thread_ = false;
  finished_.notify_all();
}

// The number of the last piece before this one of which nobody knows what it uses, 0 if there is none.
uint64_t Queue::number_of_last_barrier(uint64_t before) {
  std::lock_guard lock(mutex_);
  uint64_t found = 0;
  for (const Item& item : items_) {
    if (item.number < before && !item.work->uses()) found = item.number;
  }
  return found;
}

std::deque<Queue::Item> Queue::take(uint64_t last) {
  std::deque<Item> taken;
  while (!items_.empty() && items_.front().number <= last) {
    taken.push_back(std::move(items_.front()));
    items_.pop_front();
  }
  return taken;
}

// Runs of the work what its last piece needs. Returns the rest.
std::deque<Queue::Item> Queue::run_needed(std::deque<Item> recorded) {
  std::vector<Uses*> uses, waiting;
  for (const Item& item : recorded) uses.push_back(item.work->uses());
  const std::vector<bool> needed = needed_by_last(uses);
  std::deque<Item> rest;
  for (size_t k = 0; k < recorded.size(); ++k) {
    if (needed[k]) {
      keep_old_values(*uses[k], waiting);
      recorded[k].work->run();
      continue;
    }
    if (uses[k]) waiting.push_back(uses[k]);  // null of a barrier, with fault partial_run_passes_barriers alone
    if (!fault(Fault::partial_run_drops_rest)) rest.push_back(std::move(recorded[k]));
  }
  return rest;
}

void Queue::run_for(uint64_t number) {
  const uint64_t barrier = fault(Fault::partial_run_passes_barriers) ? 0 : number_of_last_barrier(number);
  if (barrier) wait(barrier);
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return !running_ || passed(number); });
  if (passed(number)) return;
  const auto is_it = [&](const Item& item) { return item.number == number; };
  if (std::none_of(items_.begin(), items_.end(), is_it)) return;  // done ahead of others
  std::deque<Item> recorded = take(number);
  running_ = true;
  lock.unlock();
  const bool ran_before = std::exchange(runs_queue, true);
  recorded = run_needed(std::move(recorded));
  runs_queue = ran_before;
  lock.lock();
  while (!recorded.empty()) {
    items_.push_front(std::move(recorded.back()));
    recorded.pop_back();
  }
  finish();
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
