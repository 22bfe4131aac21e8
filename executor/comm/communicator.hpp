// Ranks that exchange data: one communicator for each group of ranks that a plan has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "executor/kernels/element.hpp"
#include "executor/kernels/queue.hpp"

namespace shardwright::executor {

enum class Reduction : std::uint8_t { Sum, Max };

// An exchange that did not come about: a peer that died or did not arrive in time.
class CommunicationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The members of one group, each with its own communicator. All members issue the same collectives
// in the same order. Buffers are those of the kernels' device. With a queue of a device the calls
// return at once; on the CPU they return when the data is there. Throws CommunicationError.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  // within the group
  virtual int size() const = 0;

  // In place.
  virtual void all_reduce(void* data, std::size_t elements, Element element, Reduction reduction,
                          Queue queue) = 0;
  // `out` holds the members' parts in the order of their ranks; `in` may lie at its place in `out`.
  virtual void all_gather(const void* in, void* out, std::size_t elements_each, Element element,
                          Queue queue) = 0;
  // `in` holds a part for each member; the sum of this member's goes to `out`, which may be its
  // place in `in`.
  virtual void reduce_scatter(const void* in, void* out, std::size_t elements_each, Element element,
                              Queue queue) = 0;
  virtual void broadcast(void* data, std::size_t bytes, int root, Queue queue) = 0;

  // Messages between two members arrive in the order in which they were sent through the same
  // channel.
  virtual void send(const void* data, std::size_t bytes, int peer, int channel, Queue queue) = 0;
  virtual void receive(void* data, std::size_t bytes, int peer, int channel, Queue queue) = 0;

  // Throws CommunicationError if a call that returned at once has failed since.
  virtual void check() {}
  // Makes all calls that wait, here and at the other members, fail soon.
  virtual void abort() = 0;
};

}  // namespace shardwright::executor
