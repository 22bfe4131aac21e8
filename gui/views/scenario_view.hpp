// The fields of the scenario: the model, the machine and the goal of the search.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "core/base/error.hpp"
#include "gui/models/scenario_document.hpp"
#include "gui/views/view.hpp"

class QAbstractSpinBox;
class QComboBox;
class QGridLayout;
class QLabel;
class QLineEdit;
class QSpinBox;
class QToolButton;
class QVBoxLayout;

namespace shardwright::gui {

class GigabyteSpinBox;
class PowerSpinBox;

class ScenarioView : public View {
  Q_OBJECT

 public:
  explicit ScenarioView(ScenarioDocument* document, QWidget* parent = nullptr);

  // Shows each problem below the field that it belongs to. Returns those that belong to none.
  std::vector<Problem> show_problems(const std::vector<Problem>& problems);
  // Names the scenario of the shown plans if the fields have another one; else `text` is empty.
  void show_origin(const QString& text);
  // Marks each field that differs from `baseline` and says what it was; nothing without one.
  void mark_changes_from(const std::optional<ScenarioChoice>& baseline);
  TextTable table() const override;
  std::vector<ReportPart> report() const override;

 Q_SIGNALS:
  // The user has named the machine that the window runs on as the cluster.
  void this_machine_wanted();

 protected:
  // Keeps Undo for the scenario, because the field with the focus has one of its own.
  bool eventFilter(QObject* watched, QEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  // The fields and what they hold; of the what-ifs all, or those that change something.
  TextTable fields(bool with_unchanged) const;
  // scenario_fields.cpp
  void create_fields(QVBoxLayout& column);
  void create_workload(QGridLayout& form);
  void create_machine(QGridLayout& form);
  void create_goal(QGridLayout& form);
  void create_what_ifs(QGridLayout& form);

  // Adds a row of a title, a widget and a place for its problem.
  void add_row(QGridLayout& form, Field field, QWidget* widget);
  QComboBox* add_names(QGridLayout& form, Field field, const std::vector<std::string>& names,
                       std::string ScenarioChoice::*member, bool may_be_path);
  PowerSpinBox* add_count(QGridLayout& form, Field field, std::int64_t ScenarioChoice::*member,
                          Range range, const QString& unit = {}, const QString& unit_of_one = {});
  void take_when_left(QAbstractSpinBox& box);
  bool has_unfinished_text(const QObject* field) const;

  // scenario_view.cpp
  void take_cluster(const QString& name);
  bool offer_own_stack(const std::string& own);
  void show_name(QComboBox& box, const QString& value);
  void take_document();
  void update_tips();
  // Marks the fields that differ from the baseline and, without one, the what-ifs that are not the
  // profile's own.
  void mark_changes();
  void restyle();
  // A value that the text of a problem offers as a link.
  struct OfferedValue {
    // The part of the text with the value; empty if the text offers none.
    QString part;
    // The same part as rich text with the link, whose address is the value.
    QString linked;
  };
  // Offers the name that was probably meant, or as many GPUs as the cluster has.
  OfferedValue offered_value(Field field, const std::vector<Problem>& problems) const;
  void show_problem(Field field, const QString& text, const OfferedValue& offered = {});
  void edit(Field field, const std::function<void(ScenarioChoice&)>& change, int part = 0);

  struct NameField {
    QComboBox* box;
    std::string ScenarioChoice::*member;
  };
  struct CountField {
    PowerSpinBox* box;
    std::int64_t ScenarioChoice::*member;
  };

  struct FieldRow {
    Field field;
    QLabel* title;
    QWidget* widget;
    // What it was in the baseline.
    QLabel* before;
  };

  ScenarioDocument* document_;
  // The values that the fields were last set to.
  std::optional<ScenarioChoice> shown_;
  std::optional<ScenarioChoice> baseline_;
  // The spin box that holds a typed number which is not taken yet.
  const QObject* typed_into_ = nullptr;
  // True while the fields take the document's values, which is no edit of the user.
  bool taking_ = false;
  std::vector<NameField> names_;
  std::vector<CountField> counts_;
  std::vector<FieldRow> rows_;
  QComboBox* stack_ = nullptr;
  // The cluster's own stack, as it is offered; empty if it has none.
  std::string own_stack_;
  GigabyteSpinBox* memory_ = nullptr;
  QLineEdit* constraints_ = nullptr;
  EnumArray<planner::Resource, QSpinBox*> what_ifs_{};
  EnumArray<planner::Resource, QLabel*> what_if_titles_{}, what_ifs_before_{};
  EnumArray<Field, QLabel*> problems_{};
  QToolButton* reset_what_ifs_ = nullptr;
  QLabel* origin_ = nullptr;
  QLabel* model_facts_ = nullptr;
  QLabel* cluster_facts_ = nullptr;
};

}  // namespace shardwright::gui
