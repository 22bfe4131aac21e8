// Collectives and point-to-point transfers between the ranks of a group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "core/base/error.hpp"
#include "executor/kernels/element.hpp"

namespace shardwright::executor {

enum class Reduction : std::uint8_t { Sum, Max };

// A collective or transfer failed: a peer died or did not arrive in time.
class CommunicationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One member's view of a group. All members issue the same collectives in the same order. Buffers
// lie in the memory of the kernels' device. With a device's queue the calls return at once; on the
// CPU they return when the data has arrived. They throw CommunicationError.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Works in place.
  virtual void all_reduce(void* data, std::size_t elements, Element element, Reduction reduction,
                          Queue queue) = 0;
  // `out` receives the members' parts in rank order; `in` may be this member's part of `out`.
  virtual void all_gather(const void* in, void* out, std::size_t elements_each, Element element,
                          Queue queue) = 0;
  // `in` holds one part per member; `out` receives the sum of this member's part and may be that
  // part of `in`.
  virtual void reduce_scatter(const void* in, void* out, std::size_t elements_each, Element element,
                              Queue queue) = 0;
  // Member i gets the i-th part of `in`, of sent[i] bytes, and the parts that the members send to
  // this one follow each other in `out`, received[i] bytes from member i. Experts and context
  // parallelism use it, which `check_executable` admits on CPUs alone.
  virtual void all_to_all(const void* /*in*/, std::span<const std::size_t> /*sent*/, void* /*out*/,
                          std::span<const std::size_t> /*received*/, Queue /*queue*/) {
    SHARDWRIGHT_CHECK(false, "no all-to-all on this device");
  }
  virtual void broadcast(void* data, std::size_t bytes, int root, Queue queue) = 0;

  // Transfers between two members arrive in the order in which they were sent on the same channel.
  virtual void send(const void* data, std::size_t bytes, int peer, int channel, Queue queue) = 0;
  virtual void receive(void* data, std::size_t bytes, int peer, int channel, Queue queue) = 0;

  // Throws CommunicationError if an earlier asynchronous call has failed.
  virtual void check() {}
  // Makes all waiting calls fail soon, on this member and on the others.
  virtual void abort() = 0;
};

}  // namespace shardwright::executor
