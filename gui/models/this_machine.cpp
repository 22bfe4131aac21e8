#include "gui/models/this_machine.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <QFileInfo>
#include <algorithm>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/this_machine.hpp"
#include "gui/models/chosen_request.hpp"
#include "gui/models/run_process.hpp"
#include "gui/models/text.hpp"
#include "planner/request_check.hpp"

namespace shardwright::gui {
namespace {

constexpr int kPatienceMs = 10'000;
constexpr qsizetype kKeptProbeErrors = 4096;

}  // namespace

bool is_probed() {
  return QFileInfo::exists(to_qstring(cached_profile().string()));
}

ScenarioChoice on_this_machine(const ScenarioChoice& choice) {
  const std::string file = cached_profile().string();
  planner::PlanRequest whole;
  whole.cluster = load_cluster(file);
  try {
    whole.model = load_model(choice.model);
  } catch (const InputError&) {
    whole.model.max_seq_len = choice.seq_len;  // The search reports the problem.
  }
  planner::plan_for_all_of_it(whole);
  ScenarioChoice next = on_cluster(choice, file);
  next.accelerator = next.node = next.fabric = "";
  next.gpus = whole.gpus;
  next.global_batch = whole.global_batch;
  next.seq_len = std::min(choice.seq_len, whole.seq_len);
  next.precision = name_of(planner::usual_precision(whole.cluster));
  return next;
}

void end_with_this_program(QProcess& process) {
  process.setChildProcessModifier([program = getpid()] {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGINT, SIG_DFL);  // A shell ignores it in programs that it starts in the background.
    if (getppid() != program) _exit(1);  // The program has ended before the line above.
  });
}

MachineProbe::MachineProbe(QObject* parent) : QObject(parent) {
  end_with_this_program(process_);
  process_.setStandardOutputFile(QProcess::nullDevice());
  connect(&process_, &QProcess::finished, this, &MachineProbe::report);
  connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) Q_EMIT ended(process_.errorString());
  });
}

MachineProbe::~MachineProbe() {
  if (!is_running()) return;
  process_.disconnect(this);
  stop();
  if (process_.waitForFinished(kPatienceMs)) return;
  process_.kill();
  process_.waitForFinished(kPatienceMs);
}

void MachineProbe::start() {
  if (is_running()) return;
  stopping_ = false;
  process_.start(find_command(), {u"clusters"_s, u"show"_s, to_qstring(kHere)});
}

void MachineProbe::stop() {
  if (!is_running()) return;
  stopping_ = true;
  ::kill(static_cast<pid_t>(process_.processId()), SIGINT);
}

void MachineProbe::report(int code, QProcess::ExitStatus status) {
  const QString said =
      QString::fromUtf8(process_.readAllStandardError().right(kKeptProbeErrors)).trimmed();
  if (stopping_ || (status == QProcess::NormalExit && code == 0)) return Q_EMIT ended({});
  Q_EMIT ended(said.isEmpty() ? tr("The probe of this machine failed with code %1.").arg(code)
                              : said);
}

}  // namespace shardwright::gui
