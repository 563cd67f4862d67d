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

namespace refnpu::driver {

class Work {
 public:
  virtual ~Work() = default;
  virtual void run() = 0;
};

template <class Function>
std::unique_ptr<Work> work_of(Function function) {
  struct Called final : Work {
    explicit Called(Function made) : function(std::move(made)) {}
    void run() override { function(); }
    Function function;
  };
  return std::make_unique<Called>(std::move(function));
}

enum class Starts { at_once, delayed };  // delayed: as delay_of says

class Queue : public std::enable_shared_from_this<Queue> {
 public:
  Queue(int device, uint64_t number) : device_(device), number_(number) {}

  int device() const { return device_; }
  uint64_t number() const { return number_; }  // by order of creation in this process

  // Appends work and returns its number, from 1 on. Starts the thread if there is none yet, and waits while the queue
  // is full. Throws std::system_error if no thread can be started.
  uint64_t push(std::unique_ptr<Work> work, Starts starts);

  uint64_t submitted() const { return submitted_.load(std::memory_order_acquire); }
  bool passed(uint64_t number) const {
    return done_.load(std::memory_order_acquire) >= number || stopped_.load(std::memory_order_acquire);
  }
  bool idle() const { return passed(submitted()); }
  void wait(uint64_t number);
  bool wait_at_most(uint64_t number, std::chrono::seconds longest);  // whether it has passed

  // Drops what has not begun, and ends the thread. From then on all work counts as done.
  void stop();
  // Waits until the thread of a stopped queue has ended; returns whether it has.
  bool wait_for_end(std::chrono::seconds longest);

 private:
  struct Item {
    std::unique_ptr<Work> work;
    Starts starts;
  };

  void start_thread();
  void run_all();
  void overtake();

  const int device_;
  const uint64_t number_;
  std::mutex mutex_;
  std::condition_variable arrived_, finished_;
  std::deque<Item> items_;
  std::atomic<uint64_t> submitted_{0}, done_{0};
  std::atomic<bool> stopped_{false};
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
