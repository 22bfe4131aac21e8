#include "executor/comm/token_proof.hpp"

#include <nettle/hmac.h>

#include <string_view>

namespace shardwright::executor {
namespace {

const std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

}  // namespace

std::string token_proof(const std::string& token, ProvingSide side,
                        const std::string& server_challenge, const std::string& client_challenge) {
  static_assert(kProofBytes == SHA256_DIGEST_SIZE);
  hmac_sha256_ctx context{};
  hmac_sha256_set_key(&context, token.size(), bytes_of(token));
  for (const std::string_view part :
       {std::string_view(side == ProvingSide::Client ? "client" : "server"),
        std::string_view(server_challenge), std::string_view(client_challenge)})
    hmac_sha256_update(&context, part.size(), bytes_of(part));
  std::string proof(kProofBytes, '\0');
  hmac_sha256_digest(&context, proof.size(), reinterpret_cast<std::uint8_t*>(proof.data()));
  return proof;
}

}  // namespace shardwright::executor
