#include "executor/comm/tcp_store.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <iterator>
#include <vector>

#include "executor/comm/communicator.hpp"

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
    TcpStore guesses(kStoreAddress, server.port(), token, 5s);
    EXPECT_THROW(guesses.get("key", 1s), CommunicationError) << token;
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

// The token may arrive in pieces.
TEST(TcpStore, WaitsForTheWholeToken) {
  const TcpStoreServer server(kStoreAddress, 0, "secret");
  const Socket slow = connect_to(kStoreAddress, server.port(), 5s);
  const std::string greeting("\0\0\0\6secret", 10);
  for (const char byte : greeting) {
    send_all(slow.descriptor(), &byte, 1);
    std::this_thread::sleep_for(5ms);
  }
  const std::string request("G\0\0\0\1k", 6);
  send_all(slow.descriptor(), request.data(), request.size());
  set_receive_timeout(slow.descriptor(), 5s);
  char answer = 0;
  ASSERT_TRUE(receive_all(slow.descriptor(), &answer, 1));
  EXPECT_EQ(answer, 'M');
}

TEST(Socket, TokensDiffer) {
  EXPECT_EQ(new_token().size(), 32U);
  EXPECT_NE(new_token(), new_token());
}

}  // namespace
}  // namespace shardwright::executor
