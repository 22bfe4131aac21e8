#include "executor/comm/peer_sockets.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <vector>

#include "executor/comm/communicator.hpp"
#include "executor/comm/gloo_communicator.hpp"

namespace shardwright::executor {
namespace {

using namespace std::chrono_literals;
constexpr const char* kLoopback = "127.0.0.1";

TEST(PeerListener, AcceptsAnInvitedPeer) {
  PeerListener listener(kLoopback);
  std::vector<std::string> invitations;
  for (int i = 0; i < 5; ++i) invitations.push_back(listener.invite());
  std::vector<Socket> peers;
  for (const std::string& invitation : invitations)
    peers.push_back(connect_to_inviter(invitation, 10s));
  for (std::size_t i = invitations.size(); i-- > 0;) {
    const Socket met = listener.await(invitations[i], 10s);
    const char sent = static_cast<char>('a' + i);
    char received = 0;
    EXPECT_TRUE(send_all(peers[i].descriptor(), &sent, 1));
    EXPECT_TRUE(receive_all(met.descriptor(), &received, 1));
    EXPECT_EQ(received, sent);
  }
}

TEST(PeerListener, AcceptsNoPeerTwiceOrWithoutASecret) {
  PeerListener listener(kLoopback);
  const std::string invitation = listener.invite();
  std::string guess = invitation;
  // This byte lies within the client secret.
  guess[guess.size() - 40] ^= 1;
  EXPECT_THROW(connect_to_inviter(guess, 10s), CommunicationError);
  EXPECT_THROW(listener.await(listener.invite(), 50ms), CommunicationError);
  const Socket peer = connect_to_inviter(invitation, 10s);
  EXPECT_THROW(connect_to_inviter(invitation, 10s), CommunicationError);
  EXPECT_TRUE(listener.await(invitation, 10s).is_open());
}

// A process that listens in place of the peer does not know the server's secret.
TEST(PeerListener, CannotBeImpersonated) {
  PeerListener listener(kLoopback), impostor(kLoopback);
  std::string invitation = listener.invite();
  const std::string port = " " + std::to_string(listener.port()) + " ";
  invitation.replace(invitation.find(port), port.size(),
                     " " + std::to_string(impostor.port()) + " ");
  EXPECT_THROW(connect_to_inviter(invitation, 10s), CommunicationError);
}

// Unauthenticated peers that send nothing, send data or disconnect at once keep connecting while
// the members of a group connect and communicate.
TEST(Gloo, UnauthenticatedPeersNeitherJoinNorDisturb) {
  constexpr int kSize = 3;
  LocalStore store;
  std::vector<std::unique_ptr<GlooDevice>> devices;
  for (int rank = 0; rank < kSize; ++rank)
    devices.push_back(std::make_unique<GlooDevice>(kLoopback, 20s));
  std::atomic<bool> done = false;
  auto peers = std::async(std::launch::async, [&] {
    std::vector<Socket> kept;
    for (int i = 0; !done; ++i) {
      const auto port = devices[static_cast<std::size_t>(i % kSize)]->port();
      Socket peer = connect_to(kLoopback, port, 5s);
      const std::string words(static_cast<std::size_t>(i % 50), 'x');
      send_all(peer.descriptor(), words.data(), words.size());
      if (i % 3 == 0 && kept.size() < 100) kept.push_back(std::move(peer));
      std::this_thread::sleep_for(1ms);
    }
    return kept.size();
  });
  std::vector<std::future<float>> ranks;
  for (int rank = 0; rank < kSize; ++rank) {
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      float sum = 0.0F;
      for (int group = 0; group < 5; ++group) {
        const auto communicator = devices[static_cast<std::size_t>(rank)]->connect(
            store, "group" + std::to_string(group), rank, kSize);
        for (int i = 0; i < 20; ++i) {
          auto value = static_cast<float>(rank + 1);
          communicator->all_reduce(&value, 1, Element::Float32, Reduction::Sum, nullptr);
          sum += value;
        }
      }
      return sum;
    }));
  }
  for (auto& rank : ranks) EXPECT_EQ(rank.get(), 5.0F * 20.0F * (1.0F + 2.0F + 3.0F));
  done = true;
  EXPECT_GT(peers.get(), 0U);
}

}  // namespace
}  // namespace shardwright::executor
