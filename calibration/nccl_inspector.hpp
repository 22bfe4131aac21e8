// Output of NCCL's Inspector plugin (ext-profiler/inspector): a JSON object a line, with what each
// collective of a rank took.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/large_json_file.hpp"
#include "core/spec/exchange_sample.hpp"

namespace shardwright::calibration {

// True of the beginning of such output.
bool is_inspector_output(std::string_view head);

struct InspectorCommunicator {
  // The header states it, and it is equal on all ranks of the communicator.
  std::string id;
  std::int64_t rank = 0, ranks = 0, nodes = 1;
};

// A collective, or a message, whose kind is Send or Receive.
struct InspectorCall {
  OpKind kind = OpKind::AllReduce;
  // False if the plugin did not take the time on the device.
  bool by_device = true;
  // Among those of the process.
  std::int32_t communicator = 0;
  // The number of the call in its communicator, or -1.
  std::int64_t sequence = -1;
  Bytes bytes;
  Seconds time;
};

bool is_message(const InspectorCall& call);

// A process of a job, with one rank in each of its communicators.
struct InspectorProcess {
  std::string file;
  std::vector<InspectorCommunicator> communicators;
  std::vector<InspectorCall> calls;
  // Calls of kinds that are left out, by NCCL's name of the kind.
  std::map<std::string, std::int64_t> left_out{};
  // Lines of the file that state a call but are no JSON, on the file's first process.
  std::int64_t unreadable_lines = 0;

  // That in which its rank is the job's: the largest one. At least one communicator.
  const InspectorCommunicator& world() const;
};

// Reads a file line by line, plain or compressed with gzip; a file may hold several processes.
// Collectives are those of `coll_perf`, messages those of `p2p_perf`, with the `header` on the same
// line or of the last one before it. Throws InputError where no line states either, and
// ReadingStopped where `watch` asks for it.
std::vector<InspectorProcess> read_inspector(const std::string& file,
                                             const ReadingWatch& watch = {});

// Parses a file's text.
std::vector<InspectorProcess> parse_inspector(const std::string& text, const std::string& source);

// The kinds of which the plugin took any time on the device.
std::set<OpKind> kinds_timed_on_device(const std::vector<InspectorProcess>& processes);

// Calls `visit` for each collective, and with `messages` for each message, whose time the plugin
// took on the device; of kinds of which it took none there, for all of them.
void for_each_timed_call(
    const std::vector<InspectorProcess>& processes, bool messages,
    const std::function<void(const InspectorCommunicator&, const InspectorCall&)>& visit);

// The collectives by kind, size and group, without messages: the lower quartile of their times,
// since a collective's time holds the wait for the last rank. Times that the plugin did not take on
// the device count only for kinds that have no others. Throws InputError where there is no
// collective.
std::vector<ExchangeSample> samples_of(const std::vector<InspectorProcess>& processes,
                                       const std::string& source);

}  // namespace shardwright::calibration
