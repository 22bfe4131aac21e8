// Which shipped model a name in a source means.
//
// Sources write one model in many ways: "meta-llama/Llama-2-7b-chat-hf", "Llama 2 7B (MLPerf)",
// "LLAMA2-7B". A name is cut into words, numbers and sizes ("llama", "2", "7b"), whose order and
// signs mean nothing; owners, versions of the weights and what they were tuned for change no size.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/model_spec.hpp"

namespace shardwright::sim {

// Whether words beside those of a shipped model may hold numbers ("cut to 4 layers"), which could
// also be those of another model: only where the row's sizes can tell.
enum class OtherNumbers : std::uint8_t { Refused, Allowed };

// The shipped model of all these words; otherwise the one most of whose words, its size among
// them, stand in the name beside others that make no other architecture of it ("mini", and "MoE"
// where it is dense). Null if there is none.
const ModelSpec* model_named(const std::string& name, OtherNumbers others = OtherNumbers::Refused);

// What stands before the first number: {"gpt", "neox"} of "GPT-NeoX-20B".
std::set<std::string> family_words(const std::string& name);

// Experts of a name like "Mixtral-8x7B"; 0 without such words.
std::int64_t experts_in_name(const std::string& name);

}  // namespace shardwright::sim
