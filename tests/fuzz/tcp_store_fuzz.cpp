// Bytes that reach the rendezvous from the network. The first byte says whether the client knows
// the token; whatever follows, the store goes on serving others.
#include <sys/socket.h>

#include <chrono>

#include "executor/comm/tcp_store.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace shardwright;

namespace {

constexpr const char* kToken = "secret";
constexpr std::chrono::seconds kPatience{5};

void send_bytes(std::uint16_t port, const std::string& bytes) {
  const executor::Socket client = executor::connect_to("127.0.0.1", port, kPatience);
  executor::send_all(client.descriptor(), bytes.data(), bytes.size());
  shutdown(client.descriptor(), SHUT_WR);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_text(data, size, [](const std::string& text) {
    if (text.empty()) return;
    const std::string greeting("\0\0\0\6secret", 10);
    executor::TcpStoreServer server("127.0.0.1", 0, kToken);
    send_bytes(server.port(), (text[0] % 2 == 0 ? greeting : "") + text.substr(1));
    executor::TcpStore honest("127.0.0.1", server.port(), kToken, kPatience);
    honest.set("a key of its own", "value");
    SHARDWRIGHT_CHECK(honest.get("a key of its own", kPatience) == "value",
                      "the store lost a value");
  });
}
