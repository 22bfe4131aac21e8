// Proof that a process knows the token of a run, which does not show the token: each side of a
// connection answers the other's random challenge.
//
//   server → client   its challenge, new_token()
//   client → server   a challenge of its own, then HMAC-SHA256(token, "client" + both challenges)
//   server → client   HMAC-SHA256(token, "server" + both challenges)
//
// HMAC: RFC 2104; the exchange is that of ISO/IEC 9798-4, mutual authentication in three passes.
#pragma once

#include <cstddef>
#include <string>

namespace shardwright::executor {

inline constexpr std::size_t kChallengeBytes = 32, kProofBytes = 32;

enum class ProvingSide { Client, Server };

std::string token_proof(const std::string& token, ProvingSide side,
                        const std::string& server_challenge, const std::string& client_challenge);

}  // namespace shardwright::executor
