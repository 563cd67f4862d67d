// The queue of a stream: work in its order, and the thread that runs it.
//
// Deadlock is impossible: work waits for nothing but work that was submitted before it, on any stream, so the oldest
// unfinished work can always go on; and calls that wait are refused in the threads that run work.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "driver/src/uses.h"

namespace refnpu::driver {

class Work {
 public:
  virtual ~Work() = default;
  virtual void run() = 0;
  // What the work uses; null: nobody knows, so all work before it runs first.
  virtual Uses* uses() { return nullptr; }
};

template <class Function>
class Called : public Work {
 public:
  explicit Called(Function function) : function_(std::move(function)) {}
  void run() override { function_(); }

 private:
  Function function_;
};

template <class Function>
std::unique_ptr<Work> work_of(Function function) {
  return std::make_unique<Called<Function>>(std::move(function));
}

// Work that uses no memory, and that no other work needs.
template <class Function>
std::unique_ptr<Work> work_without_uses(Function function) {
  struct Apart final : Called<Function> {
    using Called<Function>::Called;
    Uses* uses() override { return &none; }
    Uses none;
  };
  return std::make_unique<Apart>(std::move(function));
}

enum class Starts { at_once, delayed };  // delayed: as delay_of says when the work is submitted

class Queue : public std::enable_shared_from_this<Queue> {
 public:
  Queue(int device, uint64_t number) : device_(device), number_(number) {}

  int device() const { return device_; }
  uint64_t number() const { return number_; }  // by order of creation in this process

  // Appends work and returns its number, from 1 on. Starts the thread if there is none yet, and waits while the queue
  // is full. The thread runs the work when it is requested, unless work is recorded: then at once. Throws
  // std::system_error if no thread can be started.
  uint64_t push(std::unique_ptr<Work> work, Starts starts);

  uint64_t submitted() const { return submitted_.load(std::memory_order_acquire); }
  bool passed(uint64_t number) const {
    return done_.load(std::memory_order_acquire) >= number || stopped_.load(std::memory_order_acquire);
  }
  bool idle() const { return passed(submitted()); }
  void request(uint64_t number);                                     // lets the thread run recorded work up to this
  void wait(uint64_t number);                                        // requests it, too
  bool wait_at_most(uint64_t number, std::chrono::seconds longest);  // whether it has passed

  // Runs the work that the piece `number` needs, and it, and leaves the rest recorded. Returns when it is done; then
  // `number` need not have passed.
  void run_for(uint64_t number);

  // Drops what has not begun, and ends the thread. From then on all work counts as done.
  void stop();
  // Waits until the thread of a stopped queue has ended; returns whether it has.
  bool wait_for_end(std::chrono::seconds longest);

 private:
  struct Item {
    std::unique_ptr<Work> work;
    Starts starts;
    uint64_t number;
    std::chrono::microseconds delay;
  };

  void start_thread();
  void run_all();
  void overtake();
  void wait_for_room();
  void finish();
  uint64_t number_of_last_barrier(uint64_t before);
  std::deque<Item> take(uint64_t last);
  std::deque<Item> run_needed(std::deque<Item> recorded);
  bool has_requested() const { return !items_.empty() && items_.front().number <= requested_; }

  const int device_;
  const uint64_t number_;
  std::mutex mutex_;
  std::condition_variable arrived_, finished_;
  std::deque<Item> items_;
  std::atomic<uint64_t> submitted_{0}, done_{0};  // done_: all work up to this number is done
  std::atomic<bool> stopped_{false};
  uint64_t requested_ = 0;
  bool running_ = false;  // some thread runs work of the queue
  bool has_thread_ = false;
  bool overtook_ = false;
};

// A point in a queue's work. The default one has always passed.
struct Moment {
  std::shared_ptr<Queue> queue;
  uint64_t number = 0;

  bool passed() const { return !queue || queue->passed(number); }
  void wait() const {
    if (queue) queue->wait(number);
  }
};

// Whether the calling thread is one that runs queued work.
bool on_worker();

}  // namespace refnpu::driver
