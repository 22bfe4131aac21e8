// The shipped profile that a source's name of its software means.
//
// "torchtitan v0.1", "MLPerf (NeMo)", "FSDP (PyTorch 2.1)": names come with releases, with what
// they are made of and with words that tell nothing of the software.
#pragma once

#include <string>

namespace shardwright::sim {

// A source's name of its software without the frameworks that it denies: "Megatron-LM (not
// DeepSpeed)", "FSDP instead of DeepSpeed", "NeMo without Megatron-Core".
std::string without_denied_frameworks(const std::string& stack);

// Whether a profile is that of a family, which stands for software without one of its own.
bool is_generic(const std::string& profile);

// The profile of that name or alias, also with a release behind it, or the one that some of the
// words name where the others name no further framework ("HF Accelerate FSDP" is none of FSDP's
// alone, and "our ZeRO" is not DeepSpeed's). Empty without one.
std::string own_profile(const std::string& spelling);

}  // namespace shardwright::sim
