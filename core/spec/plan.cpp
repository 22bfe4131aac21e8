#include "core/spec/plan.hpp"

#include "core/base/error.hpp"
#include "core/spec/plan_names.hpp"

namespace shardwright {

namespace {

template <class E>
const char* name_in(const EnumNames<E>& names, E wanted) {
  for (const auto& [name, value] : names) {
    if (value == wanted) return name.c_str();
  }
  SHARDWRIGHT_CHECK(false, "an enumerator without name");
  return "";
}

}  // namespace

const EnumNames<ScheduleKind>& schedule_names() {
  static const EnumNames<ScheduleKind> names = {
      {"gpipe", ScheduleKind::GPipe},
      {"1f1b", ScheduleKind::OneFOneB},
      {"interleaved", ScheduleKind::Interleaved},
      {"zb-h1", ScheduleKind::ZbH1},
      {"zb-h2", ScheduleKind::ZbH2},
      {"zb-v", ScheduleKind::ZbV},
      {"dualpipe", ScheduleKind::DualPipe},
  };
  return names;
}

const EnumNames<RecomputePolicy>& recompute_names() {
  static const EnumNames<RecomputePolicy> names = {
      {"none", RecomputePolicy::None},
      {"selective", RecomputePolicy::Selective},
      {"full", RecomputePolicy::Full},
  };
  return names;
}

const EnumNames<ContextParallelKind>& context_parallel_names() {
  static const EnumNames<ContextParallelKind> names = {
      {"ring", ContextParallelKind::Ring},
      {"all-gather", ContextParallelKind::AllGather},
      {"ulysses", ContextParallelKind::Ulysses},
  };
  return names;
}

const EnumNames<Axis>& axis_names() {
  static const EnumNames<Axis> names = {
      {"tp", Axis::Tensor}, {"cp", Axis::Context},  {"ep", Axis::Expert},
      {"dp", Axis::Data},   {"pp", Axis::Pipeline},
  };
  return names;
}

const char* name_of(ScheduleKind schedule) {
  return name_in(schedule_names(), schedule);
}

const char* name_of(RecomputePolicy policy) {
  return name_in(recompute_names(), policy);
}

const char* name_of(ContextParallelKind kind) {
  return name_in(context_parallel_names(), kind);
}

const EnumNames<OptimizerOffload>& optimizer_offload_names() {
  static const EnumNames<OptimizerOffload> names = {
      {"none", OptimizerOffload::None},
      {"host", OptimizerOffload::Host},
      {"nvme", OptimizerOffload::Nvme},
  };
  return names;
}

const char* name_of(OptimizerOffload offload) {
  return name_in(optimizer_offload_names(), offload);
}

const char* name_of(Axis axis) {
  return name_in(axis_names(), axis);
}

const EnumNames<Precision>& precision_names() {
  static const EnumNames<Precision> names = [] {
    EnumNames<Precision> result;
    for (const Precision precision : kPrecisions) result.push_back({name_of(precision), precision});
    return result;
  }();
  return names;
}

}  // namespace shardwright
