#include "gui/topology/topology_view.hpp"

#include <QComboBox>
#include <QLabel>
#include <QSignalBlocker>
#include <QSlider>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "gui/models/text.hpp"
#include "gui/topology/node_map.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/layouts.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {

TopologyView::TopologyView(QWidget* parent) : View(parent), canvas_(new TopologyCanvas) {
  nodes_ = new NodeMap;
  nodes_->hide();
  pool_note_ = wrapped_label(u"topology_pool_note"_s);
  pool_note_->setContentsMargins(8, 0, 8, 3);
  empty_ = new EmptyState(column_of({create_bar(), pool_note_, canvas_, nodes_}), this);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(empty_);
  // The stack passes the focus on from within a page, but not from the page itself.
  setFocusProxy(canvas_);
  connect(canvas_, &TopologyCanvas::loaded, this, &TopologyView::update_nodes);
  connect(nodes_, &NodeMap::clicked, this, [this](std::uint32_t domain) {
    all_nodes_->setChecked(false);
    canvas_->show_domain(domain);
  });
  clear();
}

QWidget* TopologyView::create_bar() {
  all_nodes_ = named<ToggleButton>(u"topology_all_nodes"_s);
  all_nodes_->setText(tr("All nodes"));
  all_nodes_->setToolTip(tr("Shows every node of the cluster by its busiest link"));
  connect(all_nodes_, &ToggleButton::toggled, this, [this](bool all) {
    canvas_->setVisible(!all);
    nodes_->setVisible(all);
    // A hidden widget takes no focus.
    setFocusProxy(all ? static_cast<QWidget*>(nodes_) : canvas_);
    update_nodes();
  });
  moment_ = named<QSlider>(u"topology_moment"_s, Qt::Horizontal);
  moment_->setRange(0, kStepParts);
  moment_->setAccessibleName(tr("Part of the step"));
  moment_->setToolTip(
      tr("The load of the links in a part of the step; at the left end that of all of it"));
  moment_label_ = new QLabel(tr("the whole step"));
  // A slider whose label grows would move under the mouse.
  follow_letters(*moment_label_, [label = moment_label_] {
    label->setMinimumWidth(12 * label->fontMetrics().height());
  });
  connect(moment_, &QSlider::valueChanged, this, &TopologyView::take_moment);
  pool_ = named<QComboBox>(u"topology_pool"_s);
  pool_->setAccessibleName(tr("Pool"));
  pool_->setToolTip(tr("The pool whose nodes and links are drawn"));
  leave_wheel_to_scrolling(*pool_);
  connect(pool_, &QComboBox::currentIndexChanged, this, &TopologyView::show_pool);
  QWidget* bar = row_of({pool_, all_nodes_, moment_, moment_label_}, moment_);
  bar->layout()->setContentsMargins(8, 3, 8, 3);
  return bar;
}

void TopologyView::select_range(double from, double to) {
  range_.emplace(from, to);
  canvas_->select_range(from, to);
  show_moment(0, canvas_->scene().span_title);
}

void TopologyView::clear_range() {
  show_moment(0, tr("the whole step"));
  range_.reset();
  canvas_->clear_range();
}

void TopologyView::show_moment(int position, const QString& part) {
  const QSignalBlocker quiet(moment_);
  moment_->setValue(position);
  moment_label_->setText(part);
}

void TopologyView::take_moment(int position) {
  const double part = canvas_->step_length() / kStepParts;
  if (position == 0 || part <= 0.0) return clear_range();
  const double from = (position - 1) * part;
  range_.emplace(from, from + part);
  canvas_->select_range(from, from + part);
  show_moment(position, canvas_->scene().span_title);
}

void TopologyView::update_nodes() {
  if (!nodes_->isVisibleTo(this) || canvas_->is_empty()) return;
  const TopologyScene& scene = canvas_->scene();
  nodes_->show_loads(domain_loads(canvas_->map(), scene.utilisation), scene.scale_end,
                     canvas_->domain_names());
}

void TopologyView::show_steps(std::vector<std::shared_ptr<const PlacedStep>> steps) {
  steps_ = std::move(steps);
  range_.reset();
  show_moment(0, tr("the whole step"));
  offer_pools();
  show_pool(pool_->currentIndex());
  moment_->setEnabled(canvas_->step_length() > 0.0);
  empty_->show_content();
  // Only a problem of this view is taken back: the window may show one of another view.
  if (std::exchange(reported_problem_, false)) Q_EMIT problem({});
}

// Keeps the pool that was chosen if the step has it.
void TopologyView::offer_pools() {
  const QSignalBlocker quiet(pool_);
  const QString before = pool_->currentData().toString();
  pool_->clear();
  for (const auto& step : steps_) {
    const PoolStages& stages = step->stages;
    const std::int64_t last = stages.first + stages.count - 1;
    const QString name = to_qstring(stages.pool);
    pool_->addItem(stages.count == 1 ? tr("%1, stage %2").arg(name).arg(last)
                                     : tr("%1, stages %2–%3").arg(name).arg(stages.first).arg(last),
                   name);
  }
  pool_->setCurrentIndex(std::max(0, pool_->findData(before)));
  pool_->setVisible(steps_.size() > 1);
  pool_note_->setVisible(steps_.size() > 1);
}

void TopologyView::show_pool(int pool) {
  const std::shared_ptr<const PlacedStep>& step = steps_[static_cast<std::size_t>(pool)];
  const auto range = range_;
  canvas_->show_step(step);
  if (range) canvas_->select_range(range->first, range->second);
  pool_note_->setText(tr("This is the pool %1 alone: what passes between pools is not drawn.")
                          .arg(to_qstring(step->stages.pool)));
}

void TopologyView::select_rank(int rank) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const ClusterMap& map = steps_[i]->map;
    if (rank >= map.first_rank() && rank < map.first_rank() + map.ranks())
      pool_->setCurrentIndex(static_cast<int>(i));
  }
  canvas_->select_rank(rank);
}

void TopologyView::show_problem(const QString& text) {
  clear();
  reported_problem_ = true;
  Q_EMIT problem(text);
}

void TopologyView::clear(const QString& hint) {
  steps_.clear();
  canvas_->clear();
  empty_->show_hint(hint.isEmpty()
                        ? u"<b>No cluster yet</b><br>Choose a plan to see the places of its ranks "
                          "in the cluster and the load of the links."_s
                        : hint);
}

TextTable TopologyView::table() const {
  if (canvas_->is_empty()) return {};
  return link_table(canvas_->map(), canvas_->scene().bytes, canvas_->scene().utilisation);
}

}  // namespace shardwright::gui
