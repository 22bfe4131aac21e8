#include "gui/views/scatter_pane.hpp"

#include <QComboBox>
#include <QSettings>
#include <QVBoxLayout>
#include <utility>

#include "gui/models/plan_figures.hpp"
#include "gui/models/text.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/layouts.hpp"
#include "gui/views/plan_scatter.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

// The height of the plot in lines of text, with its legend and axes: at least, and above the hint.
constexpr int kLeastScatterLines = 8, kScatterLinesAboveHint = 14;

}  // namespace

ScatterPane::ScatterPane(QWidget* parent)
    : QWidget(parent),
      scatter_(new PlanScatter),
      points_(new EmptyState(scatter_)),
      x_(create_axis(u"scatter_x"_s, u"step"_s, false)),
      y_(create_axis(u"scatter_y"_s, u"memory"_s, false)),
      colour_(create_axis(u"scatter_colour"_s, u"tp"_s, true)),
      hint_(named<HintLabel>(
          u"scatter_hint"_s,
          tr("Drag around points to keep only those · click: choose · Ctrl+click: compare · double "
             "click: leave the outermost out, or show all"))) {
  scatter_->setMinimumHeight(fontMetrics().height() * kLeastScatterLines);
  scatter_->setToolTip({});
  scatter_->setWhatsThis(tr(
      "Drag around points to keep only those (Shift: a rectangle). Click "
      "chooses a plan, Ctrl+click compares with it. The wheel zooms, over an "
      "axis only that one; a double click leaves the tenth of the plans at each end out, or shows "
      "all again."));
  auto* line = new FlowLayout;
  const std::pair<QString, QComboBox*> axes[] = {
      {tr("x"), x_}, {tr("y"), y_}, {tr("colour"), colour_}};
  for (const auto& [name, box] : axes) {
    QWidget* axis = row_of({new QLabel(name), box}, box);
    axis->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    line->addWidget(axis);
  }
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addLayout(line);
  points_->show_content();
  layout->addWidget(points_, 1);
  layout->addWidget(hint_);
  apply_axes();
}

int ScatterPane::height_with(int scatter_lines) const {
  return layout()->itemAt(0)->heightForWidth(width()) + layout()->spacing() +
         fontMetrics().height() * scatter_lines;
}

// The hint gives way to the plot.
QSize ScatterPane::minimumSizeHint() const {
  return {QWidget::minimumSizeHint().width(), height_with(kLeastScatterLines)};
}

void ScatterPane::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  const int hint = layout()->spacing() + hint_->heightForWidth(width());
  hint_->setVisible(height() >= height_with(kScatterLinesAboveHint) + hint);
}

QComboBox* ScatterPane::create_axis(const QString& id, const QString& figure, bool with_names) {
  auto* box = named<QComboBox>(id);
  for (const PlanFigure& each : plan_figures()) {
    if (each.value || with_names) box->addItem(each.heading(), each.id);
  }
  box->setCurrentIndex(box->findData(figure));
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(8);
  leave_wheel_to_scrolling(*box);
  connect(box, &QComboBox::currentIndexChanged, this, &ScatterPane::apply_axes);
  return box;
}

void ScatterPane::name_accelerators(const char* word) {
  for (QComboBox* box : {x_, y_, colour_}) {
    for (int item = 0; item < box->count(); ++item)
      box->setItemText(item,
                       plan_figure(figure_index(box->itemData(item).toString())).heading(word));
  }
}

void ScatterPane::apply_axes() {
  const auto index = [](const QComboBox* box) {
    return figure_index(box->currentData().toString());
  };
  scatter_->set_axes(index(x_), index(y_), index(colour_));
}

QString ScatterPane::title() const {
  return tr("%1 against %2").arg(y_->currentText(), x_->currentText());
}

void ScatterPane::save(QSettings& settings) const {
  for (const QComboBox* box : {x_, y_, colour_})
    settings.setValue(u"plans/"_s + box->objectName(), box->currentData());
}

void ScatterPane::restore(const QSettings& settings) {
  for (QComboBox* box : {x_, y_, colour_}) {
    const int index = box->findData(settings.value(u"plans/"_s + box->objectName()));
    if (index >= 0) box->setCurrentIndex(index);
  }
}

}  // namespace shardwright::gui
