#include "executor/comm/tcp_store.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <iterator>
#include <vector>

#include "executor/comm/communicator.hpp"
#include "executor/comm/token_proof.hpp"

namespace shardwright::executor {
namespace {

using namespace std::chrono_literals;
constexpr const char* kStoreAddress = "127.0.0.1";

TEST(TcpStore, PassesValuesBetweenRanks) {
  const TcpStoreServer server(kStoreAddress, 0, "secret");
  TcpStore first(kStoreAddress, server.port(), "secret", 5s);
  TcpStore second(kStoreAddress, server.port(), "secret", 5s);
  const std::string value("with\0zero", 9);
  auto waiting = std::async(std::launch::async, [&] { return second.get("key", 5s); });
  first.set("key", value);
  EXPECT_EQ(waiting.get(), value);
  EXPECT_EQ(first.own_address(), kStoreAddress);
}

TEST(TcpStore, AnswersNothingWithoutTheToken) {
  const TcpStoreServer server(kStoreAddress, 0, "secret");
  TcpStore knows(kStoreAddress, server.port(), "secret", 5s);
  knows.set("key", "value");
  for (const char* token : {"", "Secret", "secret2"}) {
    EXPECT_THROW(TcpStore(kStoreAddress, server.port(), token, 5s), CommunicationError) << token;
  }
  EXPECT_EQ(knows.get("key", 1s), "value");
}

TEST(TcpStore, GivesUpInTime) {
  const TcpStoreServer server(kStoreAddress, 0, "secret");
  TcpStore store(kStoreAddress, server.port(), "secret", 5s);
  EXPECT_THROW(store.get("never set", 200ms), CommunicationError);
  EXPECT_THROW(TcpStore(kStoreAddress, 1, "secret", 100ms), CommunicationError);
}

std::size_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

// More peers than may wait at a time; none of them gets a thread.
TEST(TcpStore, UnauthenticatedPeersCostLittleAndDelayNobody) {
  const TcpStoreServer server(kStoreAddress, 0, "secret");
  const std::size_t before = threads();
  std::vector<Socket> peers;
  for (int i = 0; i < 300; ++i) {
    peers.push_back(connect_to(kStoreAddress, server.port(), 5s));
    if (i % 3 == 0) send_all(peers.back().descriptor(), "\0\0", 2);
    if (i % 3 == 1) send_all(peers.back().descriptor(), "\377\377\377\377secret", 10);
  }
  TcpStore knows(kStoreAddress, server.port(), "secret", 5s);
  knows.set("key", "value");
  EXPECT_EQ(knows.get("key", 5s), "value");
  EXPECT_EQ(threads(), before + 1);
}

TEST(TcpStore, ForgetsDisconnectedClients) {
  const TcpStoreServer server(kStoreAddress, 0, "secret");
  const std::size_t before = threads();
  for (int i = 0; i < 30; ++i)
    TcpStore(kStoreAddress, server.port(), "secret", 5s).set("key", "value");
  for (int i = 0; i < 100 && threads() > before; ++i) std::this_thread::sleep_for(50ms);
  EXPECT_EQ(threads(), before);
}

// The other end of a client's connection, as a process that does not know the token sees it.
struct Eavesdropper {
  Socket listener = listen_at(kStoreAddress, 0);

  // Sends a challenge, returns what the client answers, and sends `answer`.
  std::string greet(const std::string& challenge, const std::string& answer) const {
    const Socket client(accept(listener.descriptor(), nullptr, nullptr));
    send_all(client.descriptor(), challenge.data(), challenge.size());
    std::string greeting(kChallengeBytes + kProofBytes, '\0');
    EXPECT_TRUE(receive_all(client.descriptor(), greeting.data(), greeting.size()));
    send_all(client.descriptor(), answer.data(), answer.size());
    return greeting;
  }
};

TEST(TokenProof, ShowsNoTokenAndProvesNothingElsewhere) {
  const TcpStoreServer server(kStoreAddress, 0, "secret");
  const Socket connected = connect_to(kStoreAddress, server.port(), 5s);
  std::string challenge(kChallengeBytes, '\0');
  ASSERT_TRUE(receive_all(connected.descriptor(), challenge.data(), challenge.size()));
  // A relay hands the server's challenge to a client, whose proof is good for this connection
  // alone.
  const Eavesdropper relay;
  auto client = std::async(std::launch::async,
                           [&] { TcpStore(kStoreAddress, port_of(relay.listener), "secret", 5s); });
  // It cannot prove the token to the client, not even by the client's own proof.
  const std::string greeting = relay.greet(challenge, "A" + std::string(kProofBytes, 'x'));
  EXPECT_THROW(client.get(), CommunicationError);
  EXPECT_EQ(greeting.find("secret"), std::string::npos);
  const Socket later = connect_to(kStoreAddress, server.port(), 5s);
  std::string other(kChallengeBytes, '\0');
  ASSERT_TRUE(receive_all(later.descriptor(), other.data(), other.size()));
  EXPECT_NE(other, challenge);
  send_all(later.descriptor(), greeting.data(), greeting.size());
  char answer = 0;
  ASSERT_TRUE(receive_all(later.descriptor(), &answer, 1));
  EXPECT_EQ(answer, 'R');
}

// By Python's hmac.new(b"key", b"clientab", "sha256").
TEST(TokenProof, IsHmacSha256) {
  const std::string proof = token_proof("key", ProvingSide::Client, "a", "b");
  std::string hexadecimal;
  for (const char byte : proof)
    hexadecimal += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  EXPECT_EQ(hexadecimal, "20bda1fd4d2b746e498007a44bda58b13c367bfccd1f4cd63e257060720008e6");
}

// The proof may arrive in pieces.
TEST(TcpStore, WaitsForTheWholeProof) {
  const TcpStoreServer server(kStoreAddress, 0, "secret");
  const Socket slow = connect_to(kStoreAddress, server.port(), 5s);
  set_receive_timeout(slow.descriptor(), 5s);
  std::string challenge(kChallengeBytes, '\0'), proof(1 + kProofBytes, '\0');
  ASSERT_TRUE(receive_all(slow.descriptor(), challenge.data(), challenge.size()));
  const std::string own(kChallengeBytes, 'c');
  const std::string greeting = own + token_proof("secret", ProvingSide::Client, challenge, own);
  for (const char byte : greeting) {
    send_all(slow.descriptor(), &byte, 1);
    std::this_thread::sleep_for(1ms);
  }
  ASSERT_TRUE(receive_all(slow.descriptor(), proof.data(), proof.size()));
  EXPECT_EQ(proof, "A" + token_proof("secret", ProvingSide::Server, challenge, own));
  const std::string request("G\0\0\0\1k", 6);
  send_all(slow.descriptor(), request.data(), request.size());
  char answer = 0;
  ASSERT_TRUE(receive_all(slow.descriptor(), &answer, 1));
  EXPECT_EQ(answer, 'M');
}

TEST(TcpStore, JoinsDuringAFloodOfConnections) {
  const TcpStoreServer server(kStoreAddress, 0, "secret");
  std::atomic<bool> ends = false;
  auto flood = std::async(std::launch::async, [&] {
    std::vector<Socket> peers;
    while (!ends) {
      peers.push_back(connect_to(kStoreAddress, server.port(), 5s));
      if (peers.size() > 600) peers.erase(peers.begin(), peers.begin() + 300);
    }
  });
  for (int rank = 0; rank < 20; ++rank) {
    TcpStore store(kStoreAddress, server.port(), "secret", 20s);
    store.set(std::to_string(rank), "joined");
    EXPECT_EQ(store.get(std::to_string(rank), 5s), "joined");
  }
  ends = true;
  flood.get();
}

TEST(Socket, TokensDiffer) {
  EXPECT_EQ(new_token().size(), 32U);
  EXPECT_NE(new_token(), new_token());
}

}  // namespace
}  // namespace shardwright::executor
