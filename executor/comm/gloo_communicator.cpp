#include "executor/comm/gloo_communicator.hpp"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/pair.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <sstream>
#include <utility>

#include "core/base/error.hpp"
#include "executor/kernels/bfloat16.hpp"

namespace shardwright::executor {
namespace {

namespace tcp = gloo::transport::tcp;

#ifdef SHARDWRIGHT_GLOO_PAIR_BYTES
static_assert(sizeof(tcp::Pair) == SHARDWRIGHT_GLOO_PAIR_BYTES, "the library's layout of a pair");
#endif

// Gloo's connection to one peer through a socket that is already connected. Gloo's own connection
// setup accepts whoever connects first.
class AuthenticatedPair final : public tcp::Pair {
 public:
  AuthenticatedPair(tcp::Context* context, tcp::Device* device, int rank,
                    std::chrono::milliseconds timeout, Socket socket)
      : Pair(context, device, rank, timeout) {
    const std::lock_guard lock(m_);
    // The base class listens from its construction on; drop the listener and whatever connected to
    // it.
    if (fd_ >= 0) {
      device_->unregisterDescriptor(fd_, this);
      ::close(fd_);
    }
    rx_ = tcp::Op();
    tx_.clear();
    ex_ = nullptr;
    state_ = INITIALIZING;
    fd_ = socket.release();
    handleConnected();
  }

  // Fails all current and later calls on both sides. Gloo's own close() notifies only the peer and
  // leaves local calls waiting until their timeout.
  void disconnect() {
    const std::lock_guard lock(m_);
    if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
  }
};

class AuthenticatedPeers final : public tcp::Context {
 public:
  // `sockets` has one entry for each member except this one.
  AuthenticatedPeers(std::shared_ptr<tcp::Device> device, int own_rank, std::vector<Socket> sockets,
                     std::chrono::milliseconds timeout)
      : Context(std::move(device), own_rank, static_cast<int>(sockets.size())) {
    setTimeout(timeout);
    for (std::size_t peer = 0; peer < sockets.size(); ++peer) {
      if (static_cast<int>(peer) == own_rank) continue;
      pairs_[peer] = std::make_unique<AuthenticatedPair>(
          this, device_.get(), static_cast<int>(peer), timeout, std::move(sockets[peer]));
    }
  }
};

class MeshContext final : public gloo::Context {
 public:
  MeshContext(std::shared_ptr<tcp::Device> device, int own_rank, std::vector<Socket> sockets,
              std::chrono::milliseconds timeout)
      : Context(own_rank, static_cast<int>(sockets.size())) {
    setTimeout(timeout);
    transportContext_ =
        std::make_shared<AuthenticatedPeers>(device, own_rank, std::move(sockets), timeout);
    device_ = std::move(device);
  }

  void disconnect() {
    for (int peer = 0; peer < size; ++peer)
      if (peer != rank) static_cast<AuthenticatedPair&>(*getPair(peer)).disconnect();
  }
};

// Tags of collectives are below those of point-to-point transfers.
constexpr std::uint64_t kTransferTags = std::uint64_t{1} << 40;

using Reducer = void (*)(void* result, const void* a, const void* b, std::size_t elements);

// Sums of 16-bit numbers are rounded once for each addend.
void add_bfloat16(void* result, const void* a, const void* b, std::size_t elements) {
  const auto *first = static_cast<const std::uint16_t*>(a),
             *second = static_cast<const std::uint16_t*>(b);
  auto* sum = static_cast<std::uint16_t*>(result);
  for (std::size_t i = 0; i < elements; ++i)
    sum[i] = to_bfloat16(from_bfloat16(first[i]) + from_bfloat16(second[i]));
}

class GlooCommunicator final : public Communicator {
 public:
  explicit GlooCommunicator(std::shared_ptr<MeshContext> context) : context_(std::move(context)) {}

  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }

  void all_reduce(void* data, std::size_t elements, Element element, Reduction reduction,
                  Queue /*queue*/) override {
    const bool sums = reduction == Reduction::Sum;
    switch (element) {
      case Element::Float64:
        return all_reduce_by<double>(
            data, elements, sums ? Reducer(&gloo::sum<double>) : Reducer(&gloo::max<double>));
      case Element::Float32:
        return all_reduce_by<float>(data, elements,
                                    sums ? Reducer(&gloo::sum<float>) : Reducer(&gloo::max<float>));
      case Element::Bfloat16:
        SHARDWRIGHT_CHECK(sums, "16-bit numbers are added up alone");
        return all_reduce_by<std::uint16_t>(data, elements, &add_bfloat16);
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

  // Each member sends every other one its part and adds the received parts in rank order, so that
  // the sum does not depend on their arrival.
  void reduce_scatter(const void* in, void* out, std::size_t elements_each, Element element,
                      Queue /*queue*/) override {
    const std::size_t bytes = elements_each * bytes_of(element);
    std::vector<char> parts(bytes * static_cast<std::size_t>(size()));
    const std::vector<std::size_t> each(static_cast<std::size_t>(size()), bytes);
    guarded([&] { transfer_parts(static_cast<const char*>(in), each, parts.data(), each); });
    std::memcpy(out, parts.data(), bytes);
    const Reducer add = element == Element::Float64   ? Reducer(&gloo::sum<double>)
                        : element == Element::Float32 ? Reducer(&gloo::sum<float>)
                                                      : Reducer(&add_bfloat16);
    for (std::size_t member = 1; member < static_cast<std::size_t>(size()); ++member)
      add(out, out, parts.data() + member * bytes, elements_each);
  }

  void all_to_all(const void* in, std::span<const std::size_t> sent, void* out,
                  std::span<const std::size_t> received, Queue /*queue*/) override {
    guarded([&] {
      transfer_parts(static_cast<const char*>(in), sent, static_cast<char*>(out), received);
    });
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
      buffer->send(peer, tag_of(channel));
      buffer->waitSend(context_->getTimeout());
    });
  }

  void receive(void* data, std::size_t bytes, int peer, int channel, Queue /*queue*/) override {
    guarded([&] {
      const auto buffer = context_->createUnboundBuffer(data, bytes);
      buffer->recv(peer, tag_of(channel));
      buffer->waitRecv(context_->getTimeout());
    });
  }

  void abort() override { context_->disconnect(); }

 private:
  static std::uint64_t tag_of(int channel) {
    return kTransferTags + static_cast<std::uint64_t>(channel);
  }

  template <class Work>
  void guarded(Work work) {
    try {
      work();
    } catch (const std::exception& error) {
      throw CommunicationError(error.what());
    }
  }

  template <class Number>
  void all_reduce_by(void* data, std::size_t elements, Reducer reducer) {
    guarded([&] {
      gloo::AllreduceOptions options(context_);
      options.setOutput(static_cast<Number*>(data), elements);
      options.setReduceFunction(reducer);
      gloo::allreduce(options);
    });
  }

  // Parts without bytes are not sent.
  void transfer_parts(const char* in, std::span<const std::size_t> sent, char* out,
                      std::span<const std::size_t> received) {
    using Pending = std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>>;
    Pending receiving, sending;
    for (int peer = 0; peer < size(); ++peer) {
      const auto part = static_cast<std::size_t>(peer);
      if (peer == rank()) {
        if (sent[part] > 0) std::memcpy(out, in, sent[part]);
      } else {
        if (received[part] > 0) {
          receiving.push_back(context_->createUnboundBuffer(out, received[part]));
          receiving.back()->recv(peer, kTransferTags - 1);
        }
        if (sent[part] > 0) {
          sending.push_back(context_->createUnboundBuffer(const_cast<char*>(in), sent[part]));
          sending.back()->send(peer, kTransferTags - 1);
        }
      }
      in += sent[part];
      out += received[part];
    }
    for (const auto& buffer : receiving) buffer->waitRecv(context_->getTimeout());
    for (const auto& buffer : sending) buffer->waitSend(context_->getTimeout());
  }

  std::shared_ptr<MeshContext> context_;
};

}  // namespace

GlooDevice::GlooDevice(const std::string& address, std::chrono::milliseconds timeout)
    : timeout_(timeout), listener_(address) {
  try {
    device_ = tcp::CreateDevice(tcp::attr(address.c_str()));
  } catch (const std::exception& error) {
    throw CommunicationError("cannot listen at " + address + ": " + error.what());
  }
}

// Each member invites the members after it and accepts the invitations of those before it.
std::vector<Socket> GlooDevice::connect_members(Store& store, const std::string& key, int rank,
                                                int size) {
  std::vector<std::string> invitations(static_cast<std::size_t>(size));
  std::string published;
  for (int guest = rank + 1; guest < size; ++guest) {
    std::string& invitation = invitations[static_cast<std::size_t>(guest)];
    invitation = listener_.invite();
    published += invitation + '\n';
  }
  store.set(key + '/' + std::to_string(rank), published);
  std::vector<Socket> sockets(static_cast<std::size_t>(size));
  for (int host = 0; host < rank; ++host) {
    std::istringstream lines(store.get(key + '/' + std::to_string(host), timeout_));
    std::string invitation;
    for (int guest = host; guest < rank; ++guest) std::getline(lines, invitation);
    sockets[static_cast<std::size_t>(host)] = connect_to_inviter(invitation, timeout_);
  }
  for (auto guest = static_cast<std::size_t>(rank) + 1; guest < sockets.size(); ++guest)
    sockets[guest] = listener_.await(invitations[guest], timeout_);
  return sockets;
}

std::unique_ptr<Communicator> GlooDevice::connect(Store& store, const std::string& key, int rank,
                                                  int size) {
  try {
    auto device = std::dynamic_pointer_cast<tcp::Device>(device_);
    SHARDWRIGHT_CHECK(device != nullptr, "Gloo made no TCP device");
    std::vector<Socket> sockets = connect_members(store, key, rank, size);
    return std::make_unique<GlooCommunicator>(
        std::make_shared<MeshContext>(std::move(device), rank, std::move(sockets), timeout_));
  } catch (const std::exception& error) {
    throw CommunicationError("rank " + std::to_string(rank) + " of " + key +
                             " could not connect: " + error.what());
  }
}

}  // namespace shardwright::executor
