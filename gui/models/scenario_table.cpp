#include "gui/models/scenario_table.hpp"

#include <QLocale>

#include "gui/models/text.hpp"

namespace shardwright::gui {

QString what_if_title(planner::Resource resource) {
  if (resource == planner::Resource::Latency) return u"1 / latency"_s;
  QString title = to_qstring(name_of(resource));
  title[0] = title[0].toUpper();
  return title;
}

TextTable table_of(const ScenarioChoice& choice) {
  TextTable table;
  table.header = {u"Field"_s, u"Value"_s};
  const auto add = [&](Field field, const QString& value) {
    table.rows.push_back({title_of(field), value});
  };
  add(Field::Model, to_qstring(choice.model));
  add(Field::Cluster, to_qstring(choice.cluster));
  const auto add_part = [&](Field field, const std::string& part) {
    add(field, part.empty() ? u"the cluster's own"_s : to_qstring(part));
  };
  add_part(Field::Accelerator, choice.accelerator);
  add_part(Field::Node, choice.node);
  add_part(Field::Fabric, choice.fabric);
  add(Field::Stack, to_qstring(choice.stack));
  add(Field::Gpus, QString::number(choice.gpus));
  add(Field::GlobalBatch,
      choice.global_batch == 0 ? u"auto"_s : QString::number(choice.global_batch));
  add(Field::SeqLen, QString::number(choice.seq_len));
  add(Field::Precision, to_qstring(choice.precision));
  add(Field::Objective, to_qstring(choice.objective));
  add(Field::MaxMemory,
      choice.max_memory_gb == 0.0
          ? u"all of it"_s
          : QString::number(choice.max_memory_gb, 'f', QLocale::FloatingPointShortest));
  add(Field::Constraints, to_qstring(choice.constraints));
  for (std::size_t i = 0; i < choice.what_if.size(); ++i) {
    table.rows.push_back(
        {u"What if: %1 (%)"_s.arg(what_if_title(static_cast<planner::Resource>(i))),
         QString::number(choice.what_if[i])});
  }
  return table;
}

}  // namespace shardwright::gui
