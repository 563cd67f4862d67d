// The streams that were recorded for blocks, and the releases that wait for streams.
#include "driver/src/held_blocks.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "driver/src/schedule.h"
#include "driver/src/stream.h"
#include "refnpu/fault.h"

namespace refnpu::driver {
namespace {

struct RecordedStreams {
  std::mutex mutex;
  std::unordered_map<char*, std::vector<npuStream_t>> of_block;  // by its start
};

RecordedStreams& recorded() {
  static auto* instance = new RecordedStreams;
  return *instance;
}

std::vector<npuStream_t> take_recorded(const Block& block) {
  std::lock_guard lock(recorded().mutex);
  auto found = recorded().of_block.extract(block.start);
  return found.empty() ? std::vector<npuStream_t>() : std::move(found.mapped());
}

}  // namespace

void record_use(const Block& block, npuStream_t stream) {
  if (!has_been_late() || stream == block.stream) return;
  std::lock_guard lock(recorded().mutex);
  auto& streams = recorded().of_block[block.start];
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

std::vector<Moment> take_uses(const Block& block) {
  std::vector<Moment> uses;
  if (!has_been_late()) return uses;
  std::vector<npuStream_t> streams = take_recorded(block);
  if (fault(block.device < 0 ? Fault::pinned_freed_at_once : Fault::freed_at_once)) return uses;
  if (block.device >= 0 && fault(Fault::recorded_streams_forgotten)) streams.clear();
  const bool replaced = !streams.empty() && fault(Fault::recorded_stream_replaces_own);
  if (block.stream && fault(Fault::freed_after_current_stream)) {
    streams.push_back(current_stream(block.device));
  } else if (block.stream && !replaced) {
    streams.push_back(block.stream);
  }
  for (npuStream_t stream : streams) {
    Moment tail = tail_of(stream);
    if (!tail.passed()) uses.push_back(std::move(tail));
  }
  return uses;
}

void release_after(const std::vector<Moment>& uses, std::function<void()> release) {
  const auto left = std::make_shared<std::atomic<size_t>>(uses.size());
  const size_t last = fault(Fault::freed_after_first_stream) ? uses.size() : 1;
  const auto count = [=, release = std::move(release)] {
    if (left->fetch_sub(1) == last) release();
  };
  // Work of the queue itself, so that a synchronization waits for it, too. The thread exists: the queue was not idle.
  for (const Moment& use : uses) use.queue->push(work_without_uses(count), Starts::at_once);
}

}  // namespace refnpu::driver
