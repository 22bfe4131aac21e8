#include "executor/comm/tcp_store.hpp"

#include <gtest/gtest.h>

#include <future>

#include "executor/comm/communicator.hpp"

namespace shardwright::executor {
namespace {

using namespace std::chrono_literals;
constexpr const char* kLoopback = "127.0.0.1";

TEST(TcpStore, HandsValuesFromOneRankToAnother) {
  const TcpStoreServer server(kLoopback, 0, "secret");
  TcpStore first(kLoopback, server.port(), "secret", 5s);
  TcpStore second(kLoopback, server.port(), "secret", 5s);
  const std::string value("with\0zero", 9);
  auto waiting = std::async(std::launch::async, [&] { return second.get("key", 5s); });
  first.set("key", value);
  EXPECT_EQ(waiting.get(), value);
  EXPECT_EQ(first.own_address(), kLoopback);
}

TEST(TcpStore, TellsNothingWithoutTheToken) {
  const TcpStoreServer server(kLoopback, 0, "secret");
  TcpStore knows(kLoopback, server.port(), "secret", 5s);
  knows.set("key", "value");
  for (const char* token : {"", "Secret", "secret2"}) {
    TcpStore guesses(kLoopback, server.port(), token, 5s);
    EXPECT_THROW(guesses.get("key", 1s), CommunicationError) << token;
  }
  EXPECT_EQ(knows.get("key", 1s), "value");
}

TEST(TcpStore, GivesUpInTime) {
  const TcpStoreServer server(kLoopback, 0, "secret");
  TcpStore store(kLoopback, server.port(), "secret", 5s);
  EXPECT_THROW(store.get("never set", 200ms), CommunicationError);
  EXPECT_THROW(TcpStore(kLoopback, 1, "secret", 100ms), CommunicationError);
}

TEST(Socket, TokensDiffer) {
  EXPECT_EQ(new_token().size(), 32U);
  EXPECT_NE(new_token(), new_token());
}

}  // namespace
}  // namespace shardwright::executor
