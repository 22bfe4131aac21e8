#include "gui/topology/topology_view.hpp"

#include <QVBoxLayout>
#include <utility>

#include "core/base/error.hpp"
#include "gui/models/text.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/layouts.hpp"

namespace shardwright::gui {

TopologyView::TopologyView(QWidget* parent) : View(parent), canvas_(new TopologyCanvas) {
  // The stack passes the focus on from within a page, but not from the page itself.
  empty_ = new EmptyState(column_of({canvas_}), this);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(empty_);
  setFocusProxy(canvas_);
  clear();
}

void TopologyView::set_plan(const ClusterSpec& cluster, const Plan& plan,
                            const Timeline* timeline) {
  try {
    canvas_->set_plan(cluster, plan, timeline);
    empty_->show_content();
    // Only a problem of this view is taken back: the window may show one of another view.
    if (std::exchange(reported_problem_, false)) Q_EMIT problem({});
  } catch (const InputError& error) {
    clear();
    reported_problem_ = true;
    Q_EMIT problem(error_text(error));
  }
}

void TopologyView::clear(const QString& files) {
  canvas_->clear();
  empty_->show_hint(files.isEmpty()
                        ? u"<b>No cluster yet</b><br>Choose a plan to see the places of its ranks "
                          "in the cluster and the load of the links."_s
                        : hint_of_files(files, u"no cluster"_s));
}

TextTable TopologyView::table() const {
  if (canvas_->is_empty()) return {};
  return link_table(canvas_->map(), canvas_->scene().bytes, canvas_->scene().utilisation);
}

}  // namespace shardwright::gui
