#include "executor/comm/gloo_communicator.hpp"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

#include <cstring>
#include <utility>

#include "core/base/error.hpp"

namespace shardwright::executor {
namespace {

// Gloo's view of a store of ours.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(executor::Store& store, std::string prefix, std::chrono::milliseconds timeout)
      : store_(store), prefix_(std::move(prefix)), timeout_(timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(prefix_ + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get(prefix_ + key, timeout_);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    for (const std::string& key : keys) store_.get(prefix_ + key, timeout);
  }

 private:
  executor::Store& store_;
  std::string prefix_;
  std::chrono::milliseconds timeout_;
};

// Tags of collectives lie below those of messages.
constexpr std::uint64_t kMessageSlots = std::uint64_t{1} << 40;

template <class Real>
void add_to(Real* sum, const Real* more, std::size_t elements) {
  gloo::sum<Real>(sum, sum, more, elements);
}

class GlooCommunicator final : public Communicator {
 public:
  explicit GlooCommunicator(std::shared_ptr<gloo::Context> context)
      : context_(std::move(context)) {}

  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }

  void all_reduce(void* data, std::size_t elements, Element element, Reduction reduction,
                  Queue /*queue*/) override {
    if (element == Element::Float64) {
      all_reduce_of<double>(data, elements, reduction);
    } else {
      SHARDWRIGHT_CHECK(element == Element::Float32, "the CPU adds fp32 and fp64 up");
      all_reduce_of<float>(data, elements, reduction);
    }
  }

  void all_gather(const void* in, void* out, std::size_t elements_each, Element element,
                  Queue /*queue*/) override {
    const std::size_t bytes = elements_each * bytes_of(element);
    auto* own = static_cast<char*>(out) + static_cast<std::size_t>(rank()) * bytes;
    guarded([&] {
      if (own != in) std::memcpy(own, in, bytes);
      gloo::AllgatherOptions options(context_);
      options.setInput(own, bytes);
      options.setOutput(static_cast<char*>(out), bytes * static_cast<std::size_t>(size()));
      gloo::allgather(options);
    });
  }

  // Each member sends every other one its part and adds up what it receives in the order of the
  // ranks, so that the sum does not depend on who comes first.
  void reduce_scatter(const void* in, void* out, std::size_t elements_each, Element element,
                      Queue /*queue*/) override {
    const std::size_t bytes = elements_each * bytes_of(element);
    std::vector<char> parts(bytes * static_cast<std::size_t>(size()));
    guarded([&] { exchange_parts(static_cast<const char*>(in), parts, bytes); });
    std::memcpy(out, parts.data(), bytes);
    for (std::size_t member = 1; member < static_cast<std::size_t>(size()); ++member) {
      const char* more = parts.data() + member * bytes;
      if (element == Element::Float64) {
        add_to(static_cast<double*>(out), reinterpret_cast<const double*>(more), elements_each);
      } else {
        add_to(static_cast<float*>(out), reinterpret_cast<const float*>(more), elements_each);
      }
    }
  }

  void broadcast(void* data, std::size_t bytes, int root, Queue /*queue*/) override {
    guarded([&] {
      gloo::BroadcastOptions options(context_);
      options.setOutput(static_cast<char*>(data), bytes);
      options.setRoot(root);
      gloo::broadcast(options);
    });
  }

  void send(const void* data, std::size_t bytes, int peer, int channel, Queue /*queue*/) override {
    guarded([&] {
      const auto buffer = context_->createUnboundBuffer(const_cast<void*>(data), bytes);
      buffer->send(peer, slot_of(channel));
      buffer->waitSend(context_->getTimeout());
    });
  }

  void receive(void* data, std::size_t bytes, int peer, int channel, Queue /*queue*/) override {
    guarded([&] {
      const auto buffer = context_->createUnboundBuffer(data, bytes);
      buffer->recv(peer, slot_of(channel));
      buffer->waitRecv(context_->getTimeout());
    });
  }

  void abort() override { context_->closeConnections(); }

 private:
  static std::uint64_t slot_of(int channel) {
    return kMessageSlots + static_cast<std::uint64_t>(channel);
  }

  template <class Work>
  void guarded(Work work) {
    try {
      work();
    } catch (const std::exception& error) {
      throw CommunicationError(error.what());
    }
  }

  template <class Real>
  void all_reduce_of(void* data, std::size_t elements, Reduction reduction) {
    guarded([&] {
      gloo::AllreduceOptions options(context_);
      options.setOutput(static_cast<Real*>(data), elements);
      using Reducer = void (*)(void*, const void*, const void*, std::size_t);
      options.setReduceFunction(reduction == Reduction::Sum ? Reducer(&gloo::sum<Real>)
                                                            : Reducer(&gloo::max<Real>));
      gloo::allreduce(options);
    });
  }

  void exchange_parts(const char* in, std::vector<char>& parts, std::size_t bytes) {
    const auto own = static_cast<std::size_t>(rank());
    std::memcpy(parts.data() + own * bytes, in + own * bytes, bytes);
    std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> pending;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      const std::size_t place = static_cast<std::size_t>(peer) * bytes;
      pending.push_back(context_->createUnboundBuffer(parts.data() + place, bytes));
      pending.back()->recv(peer, kMessageSlots - 1);
      pending.push_back(context_->createUnboundBuffer(const_cast<char*>(in) + place, bytes));
      pending.back()->send(peer, kMessageSlots - 1);
    }
    for (std::size_t i = 0; i < pending.size(); i += 2) {
      pending[i]->waitRecv(context_->getTimeout());
      pending[i + 1]->waitSend(context_->getTimeout());
    }
  }

  std::shared_ptr<gloo::Context> context_;
};

}  // namespace

struct GlooDevice::Implementation {
  std::shared_ptr<gloo::transport::Device> device;
  std::chrono::milliseconds timeout;
};

GlooDevice::GlooDevice(const GlooOptions& options)
    : implementation_(std::make_unique<Implementation>()) {
  try {
    implementation_->device =
        gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(options.address.c_str()));
  } catch (const std::exception& error) {
    throw CommunicationError("cannot listen at " + options.address + ": " + error.what());
  }
  implementation_->timeout = options.timeout;
}

GlooDevice::~GlooDevice() = default;

std::unique_ptr<Communicator> GlooDevice::connect(Store& store, const std::string& key, int rank,
                                                  int size) {
  try {
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->setTimeout(implementation_->timeout);
    GlooStore view(store, key + "/", implementation_->timeout);
    context->connectFullMesh(view, implementation_->device);
    return std::make_unique<GlooCommunicator>(std::move(context));
  } catch (const std::exception& error) {
    throw CommunicationError("rank " + std::to_string(rank) + " of " + key +
                             " could not connect: " + error.what());
  }
}

}  // namespace shardwright::executor
