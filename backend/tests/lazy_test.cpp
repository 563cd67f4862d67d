// Recorded work: what a copy to the host runs of it, what it leaves, and what it keeps. test_lazy.py sets
// REFNPU_LAZY=1.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/driver_test.h"

namespace {

constexpr size_t kElements = 40;
constexpr int64_t kModulus = 1'000'003;
using Values = std::array<int64_t, kElements>;

int64_t* block() {
  void* pointer = nullptr;
  EXPECT(npuMalloc(&pointer, sizeof(Values)) == npuSuccess);
  return static_cast<int64_t*>(pointer);
}

// The arguments of a kernel that writes to[k] = (a[k] + b[k] + by) % kModulus for all elements, and counts its runs.
struct Sum {
  int64_t* to;
  const int64_t *a, *b;
  int64_t by;
  std::atomic<int>* runs;

  void operator()() const {
    for (size_t k = 0; k < kElements; ++k) to[k] = ((a ? a[k] : 0) + (b ? b[k] : 0) + by) % kModulus;
    if (runs) ++*runs;
  }
};

// Reads the given blocks and writes `to`, which may be one of them.
void sum(int64_t* to, const int64_t* a, const int64_t* b, int64_t by, std::atomic<int>* runs = nullptr) {
  const Sum kernel{to, a, b, by, runs};
  std::vector<const void*> read;
  for (const int64_t* each : {a, b}) {
    if (each && each != to) read.push_back(each);
  }
  const npuReads reads{read.data(), read.size()};
  const npuReads* before = npuExchangeReads(&reads);
  EXPECT(npuLaunch(
             nullptr, "sum", [](const void* it) { (*static_cast<const Sum*>(it))(); }, &kernel, sizeof kernel) ==
         npuSuccess);
  npuExchangeReads(before);
}

void fill(int64_t* to, int64_t value) { sum(to, nullptr, nullptr, value); }

Values on_host(const int64_t* from) {
  Values values{};
  EXPECT(npuMemcpy(values.data(), from, sizeof values, npuMemcpyDeviceToHost) == npuSuccess);
  return values;
}

bool holds(const int64_t* from, int64_t value) {
  Values expected;
  expected.fill(value);
  return on_host(from) == expected;
}

RECORDED(recorded_work_starts_with_the_step) {
  std::atomic<int> runs{0};
  int64_t* x = block();
  sum(x, nullptr, nullptr, 3, &runs);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT(runs == 0);
  EXPECT(npuMarkStep() == npuSuccess);
  while (runs == 0) std::this_thread::yield();
  EXPECT(holds(x, 3) && runs == 1);
}

RECORDED(a_question_starts_recorded_work) {
  std::atomic<int> runs{0};
  sum(block(), nullptr, nullptr, 3, &runs);
  while (npuStreamQuery(nullptr) != npuSuccess) std::this_thread::yield();
  EXPECT(runs == 1);
  npuEvent_t event = nullptr;
  sum(block(), nullptr, nullptr, 3, &runs);
  EXPECT(npuEventCreate(&event) == npuSuccess && npuEventRecord(event, nullptr) == npuSuccess);
  while (npuEventQuery(event) != npuSuccess) std::this_thread::yield();
  EXPECT(runs == 2);
}

RECORDED(a_copy_to_the_host_runs_what_it_needs_alone) {
  std::atomic<int> needed{0}, other{0};
  int64_t *a = block(), *b = block(), *c = block(), *d = block();
  sum(a, nullptr, nullptr, 1, &needed);
  sum(d, nullptr, nullptr, 9, &other);
  sum(b, a, nullptr, 1, &needed);
  sum(c, b, a, 1, &needed);
  sum(d, c, nullptr, 1, &other);
  EXPECT(holds(c, 4) && needed == 3 && other == 0);
  EXPECT(holds(c, 4) && needed == 3 && other == 0);  // once
  EXPECT(npuDeviceSynchronize() == npuSuccess && needed == 3 && other == 2);
  EXPECT(holds(d, 5) && other == 2);
}

// The script of seed 004: t2 = t0 + t1; t1 += 1; save t1; then the step.
RECORDED(waiting_work_reads_the_old_values_of_what_a_part_overwrites) {
  std::atomic<int> other{0};
  int64_t *t0 = block(), *t1 = block(), *t2 = block();
  fill(t0, 1), fill(t1, 2);
  EXPECT(npuDeviceSynchronize() == npuSuccess);
  sum(t2, t0, t1, 0, &other);
  sum(t1, t1, nullptr, 1);
  EXPECT(holds(t1, 3) && other == 0);
  EXPECT(npuMarkStep() == npuSuccess);
  EXPECT(holds(t2, 3) && holds(t1, 3));
}

RECORDED(each_waiting_reader_has_the_values_of_its_time) {
  int64_t *x = block(), *first = block(), *second = block(), *third = block();
  fill(x, 1);
  sum(first, x, nullptr, 0);
  sum(x, x, nullptr, 10);
  sum(second, x, x, 0);
  sum(x, x, nullptr, 100);
  sum(third, x, nullptr, 1000);
  EXPECT(holds(x, 111));
  sum(x, x, nullptr, 1);
  EXPECT(holds(x, 112));
  EXPECT(holds(third, 1111) && holds(second, 22) && holds(first, 1));
}

RECORDED(what_is_written_through_a_view_is_needed) {
  int64_t* x = block();
  fill(x, 1);
  struct View {
    int64_t* last;
    void operator()() const { *last = 7; }
  } const kernel{x + kElements - 1};
  EXPECT(npuLaunch(
             nullptr, "view", [](const void* it) { (*static_cast<const View*>(it))(); }, &kernel, sizeof kernel) ==
         npuSuccess);
  EXPECT(on_host(x)[kElements - 1] == 7 && on_host(x)[0] == 1);
}

RECORDED(a_freed_block_lives_until_recorded_readers_ran) {
  int64_t *x = block(), *y = block();
  fill(x, 5);
  sum(y, x, nullptr, 1);
  EXPECT(npuFree(x) == npuSuccess);
  for (int k = 0; k < 16; ++k) fill(block(), 9);
  EXPECT(holds(y, 6));
}

RECORDED(work_of_unknown_memory_is_no_part_of_a_choice) {
  std::atomic<int> runs{0}, unknown{0};
  int64_t *x = block(), *y = block();
  sum(y, nullptr, nullptr, 1, &runs);
  EXPECT(
      npuLaunchHostFunction(nullptr, [](void* it) { ++*static_cast<std::atomic<int>*>(it); }, &unknown) == npuSuccess);
  fill(x, 2);
  EXPECT(holds(x, 2) && unknown == 1 && runs == 1);
}

RECORDED(an_error_of_recorded_work_is_told_by_the_copy_that_needs_it) {
  int64_t *x = block(), *y = block();
  struct Fails {
    int64_t* to;
    void operator()() const { throw std::runtime_error("no such element"); }
  } const kernel{x};
  EXPECT(npuLaunch(
             nullptr, "fails", [](const void* it) { (*static_cast<const Fails*>(it))(); }, &kernel, sizeof kernel) ==
         npuSuccess);
  fill(y, 2);
  EXPECT(holds(y, 2));
  Values values;
  EXPECT(npuMemcpy(values.data(), x, sizeof values, npuMemcpyDeviceToHost) == npuErrorLaunchFailure);
  EXPECT(message_has("kernel 'fails'") && npuDeviceSynchronize() == npuSuccess);
}

RECORDED(a_step_of_any_length_is_recorded) {
  int64_t* x = block();
  fill(x, 0);
  for (int k = 0; k < 3000; ++k) sum(x, x, nullptr, 1);
  EXPECT(holds(x, 3000));
}

RECORDED(threads_share_a_stream_of_recorded_work) {
  std::vector<std::thread> threads;
  for (int64_t number = 0; number < 4; ++number) {
    threads.emplace_back([number] {
      int64_t *x = block(), *y = block();
      fill(x, number);
      for (int k = 0; k < 50; ++k) {
        sum(y, x, nullptr, 1);
        sum(x, x, nullptr, 1);
        if (k % 7 == 0) EXPECT(holds(x, number + k + 1));
        if (k % 5 == 0) EXPECT(npuMarkStep() == npuSuccess);
        if (k % 3 == 0) EXPECT(holds(y, number + k + 1));
      }
      EXPECT(npuDeviceSynchronize() == npuSuccess && holds(y, number + 50));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Blocks that are combined, overwritten and read at random, against the same on the host.
RECORDED(parts_of_random_programs_have_their_values) {
  constexpr size_t kBlocks = 6;
  std::mt19937 draw(5);
  std::array<int64_t*, kBlocks> blocks{};
  std::array<int64_t, kBlocks> expected{};
  for (int64_t*& each : blocks) fill(each = block(), 0);
  for (int step = 0; step < 4000; ++step) {
    const size_t to = draw() % kBlocks, a = draw() % kBlocks, b = draw() % kBlocks;
    const int64_t by = draw() % 5;
    sum(blocks[to], blocks[a], blocks[b], by);
    expected[to] = (expected[a] + expected[b] + by) % kModulus;
    const size_t read = draw() % kBlocks;
    if (draw() % 9 == 0) EXPECT(holds(blocks[read], expected[read]));
    if (draw() % 50 == 0) EXPECT(npuMarkStep() == npuSuccess);
    if (draw() % 100 == 0)
      EXPECT(npuFree(std::exchange(blocks[read], block())) == npuSuccess), fill(blocks[read], 0), expected[read] = 0;
  }
  for (size_t k = 0; k < kBlocks; ++k) EXPECT(holds(blocks[k], expected[k]));
}

}  // namespace
